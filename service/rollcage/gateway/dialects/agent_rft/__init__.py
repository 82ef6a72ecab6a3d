"""
Agent RFT: tool calls and grading as OpenAI's and Microsoft's trainers send them.

``reading`` and ``answering`` are pure; ``route`` puts them around the use
cases; ``openapi`` describes the routes, which no framework knows of.
"""
