// npm pack of a package whose dist is bundled: `before` puts what was compiled aside, and `after` puts it back in place of what was packed. After a
// pack that failed in between, the next one finds what was put aside.
import { existsSync, renameSync, rmSync } from "node:fs";

const KEPT = ".dist-before-pack";
const remove = (folder) => rmSync(folder, { recursive: true, force: true });

if (process.argv[2] === "before") {
  if (existsSync("dist") && !existsSync(KEPT)) renameSync("dist", KEPT);
  remove("dist");
} else {
  remove("dist");
  if (existsSync(KEPT)) renameSync(KEPT, "dist");
}
