import { quote, type Diagnostic } from "../diagnostic.js";
import { readBuiltinKinds, withKinds, type BuiltinKinds } from "./crd/builtin-kinds.js";
import { EMPTY_OBJECT } from "./crd/check-definition.js";
import type { Crd } from "./crd/crd.js";
import {
  findCrdFiles,
  isDirectory,
  isSpecFile,
  listSpecFiles,
  readKnownFile,
  readPackageName,
  readProjectFile,
  type ProjectFile,
} from "./project-files.js";
import { passedOver } from "./crd/read-crd-files.js";
import type { CrdFile } from "./crd/read-crds.js";
import { hasReadCrds, recallCrds } from "./crd/recall-crds.js";
import { readExternalFiles, type ExternalFile } from "./read-external-files.js";
import { recallWorkflows } from "./recall-workflows.js";
import type { WorkflowSpec } from "./workflow-spec.js";
import { digestOf as digestOfText } from "../parts/digest.js";
import { RunParts, type PartMemory } from "../parts/part-memory.js";

/** What the files of a project say, and what is wrong with them. */
export interface ProjectInput {
  /** The name of the package, or of the folder where there is none. */
  readonly packageName: string;
  readonly crds: readonly Crd[];
  readonly workflows: readonly WorkflowSpec[];
  /** The texts that the workflows were read from. */
  readonly specFiles: readonly ProjectFile[];
  readonly builtin: BuiltinKinds;
  /** The files that external dependents name. */
  readonly externalFiles: ReadonlyMap<string, ExternalFile>;
  readonly diagnostics: readonly Diagnostic[];
}

/** Texts of files, by their paths in the project, that take the place of what is on disk. */
export type FileTexts = ReadonlyMap<string, string>;

/** How a project is read. */
export interface ReadOptions {
  readonly texts?: FileTexts | undefined;
  /** What earlier runs came to. Default: nothing. */
  readonly parts?: PartMemory;
  /** Returns the digest of a file, if it is known, so that the file is read only if no earlier run has. Default: none is */
  digestOf?(file: string): string | undefined;
  /** Called with what is being read, as it begins: for somebody who waits. */
  readonly onStep?: (step: string) => void;
  /** Reports what an API server refuses of the CRDs. Default: true */
  readonly checksDefinitions?: boolean;
}

/** Reads the workflow specs of a project, and all CRDs below `crds`. */
export async function readProject(
  project: string,
  {
    texts = new Map(),
    parts = new RunParts(),
    digestOf = () => undefined,
    onStep = () => {},
    checksDefinitions = true,
  }: ReadOptions = {},
): Promise<ProjectInput> {
  const isDefinition = (file: string) => file.startsWith("crds/");
  const specTexts = new Map([...texts].filter(([file]) => isSpecFile(file)));
  const [named, builtin, specs, found] = await Promise.all([
    readPackageName(project),
    readBuiltinKinds(),
    readSpecs(project, specTexts, parts),
    isDirectory(project).then((exists) => (exists ? findCrdFiles(project) : [])),
  ]);
  const listed = Array.isArray(found) ? found : [];
  const crdFiles = [...new Set([...listed, ...[...texts.keys()].filter(isDefinition)])].sort();
  let begun = 0;
  const read = await Promise.all(
    crdFiles.map((file) =>
      readCrdFile(project, file, {
        ...{ parts, text: texts.get(file), digest: digestOf(file) },
        onRead: () => onStep(`reading ${file} (${++begun} of ${crdFiles.length})`),
      }),
    ),
  );
  const diagnostics = [
    ...(named.problem === undefined ? [] : [named.problem]),
    ...specs.diagnostics,
    ...(Array.isArray(found) ? [] : [found]),
    ...read.flatMap(({ problem, content }) => [
      ...(problem === undefined ? [] : [problem]),
      ...(content?.diagnostics ?? []),
      ...(content === undefined || content.hasDefinitions ? [] : [passedOver(content)]),
    ]),
  ];
  const crds = read.flatMap(({ content }) => content?.crds ?? []);
  if (checksDefinitions) diagnostics.push(...definitionProblems(crds, specs.workflows));
  const described = read.flatMap(({ content }) => content?.kinds ?? []);
  const externalFiles = await readExternalFiles(project, specs.workflows, texts);
  return {
    packageName: named.name,
    crds,
    workflows: specs.workflows,
    specFiles: specs.files,
    builtin: withKinds(builtin, described),
    externalFiles,
    diagnostics,
  };
}

/** What an API server refuses of a primary's CRD is an error; the CRDs of other projects are not yours to correct. */
function definitionProblems(crds: readonly Crd[], workflows: readonly WorkflowSpec[]): Diagnostic[] {
  const primaries = new Set(workflows.map(({ primary }) => primary.replace(/\/[^/]*\//, "/")));
  return crds.flatMap((crd) => {
    const problems = crd.findProblems();
    const isOwn = primaries.has(`${crd.group}/${crd.kind}`);
    if (isOwn) return problems;
    return problems
      .filter(({ rule }) => rule !== EMPTY_OBJECT)
      .map((problem) => ({ ...problem, severity: "warning" as const }));
  });
}

async function readSpecs(
  project: string,
  texts: FileTexts,
  parts: PartMemory,
): Promise<{ workflows: WorkflowSpec[]; files: ProjectFile[]; diagnostics: Diagnostic[] }> {
  const fail = (message: string, hint: string) => ({
    ...{ workflows: [], files: [] },
    diagnostics: [{ severity: "error" as const, rule: "no-workflow", message, hint }],
  });
  const exists = await isDirectory(project);
  if (!exists && texts.size === 0)
    return fail(`there is no folder ${quote(project)}`, "name the folder of the project with --project");
  const files = [...new Set([...(exists ? await listSpecFiles(project) : []), ...texts.keys()])].sort();
  if (files.length === 0)
    return fail(
      `the folder ${quote(project)} has no workflow.yaml`,
      'write one, let "gen-operator init DIR --crd FILE" write it, or name another folder with --project; "gen-operator types" needs none',
    );
  const read = await Promise.all(
    files.map((file) => {
      const text = texts.get(file);
      return text === undefined ? readProjectFile(project, file) : { file, text };
    }),
  );
  const parsed = await Promise.all(
    read.map((file) => ("rule" in file ? { workflows: [], diagnostics: [file] } : recallWorkflows(file, parts))),
  );
  return {
    workflows: parsed.flatMap(({ workflows }) => workflows),
    files: read.flatMap((file) => ("rule" in file ? [] : [file])),
    diagnostics: parsed.flatMap(({ diagnostics }) => diagnostics),
  };
}

interface ReadCrdFile {
  readonly content?: CrdFile;
  readonly problem?: Diagnostic;
}

interface ReadCrdFileOptions {
  readonly parts: PartMemory;
  readonly text: string | undefined;
  readonly digest: string | undefined;
  onRead(): void;
}

async function readCrdFile(
  project: string,
  file: string,
  { parts, text, digest, onRead }: ReadCrdFileOptions,
): Promise<ReadCrdFile> {
  if (text === undefined && digest !== undefined && hasReadCrds({ file, digest }, parts)) {
    onRead();
    return { content: recallCrds({ file, digest, readText: () => readKnownFile(project, file, digest) }, parts) };
  }
  const found = text === undefined ? await readProjectFile(project, file) : { file, text };
  // The file is on its way to memory together with all others; it is parsed alone.
  onRead();
  if ("rule" in found) return { problem: found };
  return { content: recallCrds({ file, digest: digestOfText(found.text), readText: () => found.text }, parts) };
}
