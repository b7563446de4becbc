// Compiles the Python files of zips with the Python that will run them, so that a browser need not: compile.mjs [IN.zip OUT.zip]...
import { readFile, writeFile } from "node:fs/promises";
import { loadPyodide } from "pyodide";

const python = await loadPyodide();
for (let names = process.argv.slice(2); names.length; names = names.slice(2)) {
  python.FS.writeFile("/in.zip", await readFile(names[0]));
  python.runPython(`
import importlib._bootstrap_external as external
import zipfile

MOMENT = (1980, 1, 1, 0, 0, 0)  # the same files make the same zip
with zipfile.ZipFile("/in.zip") as given, zipfile.ZipFile("/out.zip", "w") as made:
    for name in sorted(given.namelist()):
        data = given.read(name)
        # What says what the fields of messages mean is read from the source of kio, and little of that is run.
        if name.endswith(".py") and not name.startswith("kio/"):
            code = compile(data, name, "exec", dont_inherit=True)
            data, name = external._code_to_hash_pyc(code, bytes(8), checked=False), name + "c"
        made.writestr(zipfile.ZipInfo(name, MOMENT), data)
`);
  await writeFile(names[1], python.FS.readFile("/out.zip"));
}
