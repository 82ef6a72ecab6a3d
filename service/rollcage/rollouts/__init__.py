"""
The use cases: act, finish, grade, reserve.

Free of any trainer's dialect and of HTTP; the gateway translates to and from
them.
"""
