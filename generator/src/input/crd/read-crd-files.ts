import { hasErrors, type Diagnostic } from "../../diagnostic.js";
import type { BuiltinKind } from "./builtin-kinds.js";
import { EMPTY_OBJECT } from "./check-definition.js";
import type { Crd } from "./crd.js";
import type { Inputs } from "../source/read-inputs.js";
import { readCrds, type CrdFile } from "./read-crds.js";

/** The CRDs of some files, and what is wrong with them. */
export interface CrdFiles {
  readonly crds: readonly Crd[];
  /** The kinds of OpenAPI documents. */
  readonly kinds: readonly BuiltinKind[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the CRDs of files that were asked for; that there is none is an error. `onFile` is called with each file before it is read. */
export function readCrdFiles({ files, diagnostics: problems }: Inputs, onFile?: (file: string) => void): CrdFiles {
  const parsed = files.map((file) => {
    onFile?.(file.file);
    return readCrds(file);
  });
  const diagnostics = [
    ...problems,
    ...parsed.flatMap((each) => [...each.diagnostics, ...(each.hasDefinitions ? [] : [passedOver(each)])]),
  ];
  const crds = parsed.flatMap((each) => each.crds);
  diagnostics.push(...crds.flatMap(problemsOf));
  const kinds = parsed.flatMap((each) => each.kinds);
  if (crds.length + kinds.length === 0 && !hasErrors(diagnostics))
    diagnostics.push({ severity: "error", rule: "no-crds", message: "the files hold no CustomResourceDefinition" });
  return { crds, kinds, diagnostics };
}

// A CRD of a cluster was taken by an API server, whatever the rules here say.
function problemsOf(crd: Crd): Diagnostic[] {
  const isServed = crd.file.startsWith("<cluster>");
  return crd
    .findProblems()
    .filter(({ rule }) => rule !== EMPTY_OBJECT)
    .map((problem) => (isServed ? { ...problem, severity: "warning" as const } : problem));
}

/** Says that a file was read for nothing. */
export function passedOver({ file }: CrdFile): Diagnostic {
  return {
    severity: "warning",
    rule: "not-a-crd",
    message: "the file holds no CustomResourceDefinition and is passed over",
    position: { file, line: 1, column: 1 },
  };
}
