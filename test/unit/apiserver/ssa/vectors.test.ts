import { suite } from "../../../support/suite.js";
import { readFixture, runCase, type SsaCase } from "./ssa-case.js";

for (const file of ["recorded.yaml", "cases.yaml"]) {
  suite(`server-side apply, ${file}`, (test) => {
    for (const given of readFixture(file) as SsaCase[]) test(given.name, () => runCase(given));
  });
}
