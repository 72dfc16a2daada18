/** What every client library is tried with, as python/checks.py has it: a line for each check. */

export const SERVER = process.env.MASKWRIGHT_URL;
export const URL = `${SERVER}/v1`;
export const MODEL = "embedded";
export const TEXT = "Ada Lovelace, 36, lives in London.";
export const QUESTION = "What is the weather in Paris?";
export const UNKNOWN = "no-such-model";

/** checks: functions by the name of what they try. */
export async function runChecks(checks) {
  let isWrong = false;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok\t${name}\t`);
    } catch (error) {
      isWrong = true;
      console.log(`failed\t${name}\t${String(error.stack ?? error).replaceAll(/\s*\n\s*/g, " | ").slice(0, 1500)}`);
    }
  }
  process.exit(isWrong ? 1 : 0);
}

/** The library throws an error that hands on the server's own words. */
export async function rejects(promise) {
  const told = await promise.then(() => null, (error) => `${error} ${JSON.stringify(error)} ${error.cause}`);
  if (!told?.includes(UNKNOWN)) throw new Error(`not the server's error: ${told}`);
}
