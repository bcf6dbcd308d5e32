// Writes the new version of a project and kills itself at the operation of a number: node killed-writer.js FOLDER NUMBER
import { writeFiles } from "#generator/write/write-files.js";
import { faultyOperations } from "./faulty-operations.js";
import { NEW } from "./two-versions.js";

const [folder = "", number = ""] = process.argv.slice(2);
const { operations } = faultyOperations({
  at: Number(number),
  isCrash: true,
  fail: () => {
    process.kill(process.pid, "SIGKILL");
    return new Error("the process is killed");
  },
});
await writeFiles(folder, NEW, { check: false, operations });
