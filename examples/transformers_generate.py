"""A constraint inside transformers' own `generate`: any model of AutoModelForCausalLM, here the one that ships."""

from transformers import AutoModelForCausalLM, AutoTokenizer

from maskwright import LogitsProcessor
from maskwright.constraints import Compiler, Regex, Vocabulary
from maskwright.model_folder import embedded_model

PROMPTS = ["Our new number is 555-0134.\nphone:", "The number is 555-0199, not 555-0100.\nphone:"]
MOST = 12  # tokens

folder = str(embedded_model())
tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
model = AutoModelForCausalLM.from_pretrained(folder)
if tokenizer.pad_token is None:
    tokenizer.pad_token = tokenizer.eos_token

vocabulary = Vocabulary.from_tokenizer(tokenizer, size=model.config.vocab_size)
constraint = Compiler(vocabulary).compile(Regex(r"\d{3}-\d{4}"))

inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True, return_token_type_ids=False)
length = inputs["input_ids"].shape[1]
processor = LogitsProcessor(constraint, prompt_length=length, max_new_tokens=MOST)
rows = model.generate(**inputs, max_new_tokens=MOST, do_sample=False, logits_processor=[processor])
for row in rows:
    print(tokenizer.decode(row[length:], skip_special_tokens=True))
