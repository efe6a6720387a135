"""The doctor as a callback of other libraries' loops.

``lightning.DoctorCallback``, ``transformers.DoctorCallback`` and ``skorch.DoctorCallback``; each
module needs the library it is named after.
"""
