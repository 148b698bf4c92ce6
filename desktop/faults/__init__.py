"""What went wrong, in the words of the user's language."""

from desktop.faults.fault import FAULT_KEY, INTERNAL, PROBLEM_KEY, TEXTS, Fault, fault_of, fault_text, particulars

__all__ = ["FAULT_KEY", "INTERNAL", "PROBLEM_KEY", "TEXTS", "Fault", "fault_of", "fault_text", "particulars"]
