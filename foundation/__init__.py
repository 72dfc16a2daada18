"""What every layer stands on: the base class of all errors, and where compiled code is kept. Imports nothing of the package."""
