"""Compare the shipped JSON Schemas with the classes that they are made from.

``python .ci/schemas.py --write`` writes them anew.
"""

import json
import sys
from importlib import import_module

from blowfish_fast.apps.description.shipped import schema_file, shipped_schema

# The schema of a job holds parts of the other. Its module reads them when it is loaded,
# so it is loaded second.
MAKERS = {
    "table": ("blowfish_fast.apps.explorer.questions", "table_schema"),
    "job": ("blowfish_fast.apps.cli.parsing.schemas", "job_schema"),
    "registry": ("blowfish_fast.apps.cli.files.registry_keys", "registry_schema"),
}

different = []
for kind, (module, function) in MAKERS.items():
    made = getattr(import_module(module), function)()
    path, text = schema_file(kind), json.dumps(made, indent=2) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") == text:
        continue
    different.append(path.name)
    if "--write" in sys.argv:
        path.write_text(text, encoding="utf-8")
        shipped_schema.cache_clear()
if different and "--write" not in sys.argv:
    sys.exit(f"not as the classes say: {', '.join(different)}; run with --write")
