"""
The door for trainers: HTTP, authentication, admission, a folder per dialect.

Dialects only translate; what they translate to are the use cases in
``rollouts``.
"""
