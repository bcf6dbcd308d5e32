import { exactJson } from "@gen-operator/schema";
import { type Diagnostic, didYouMean, quote, subjectOfCrd } from "../diagnostic.js";
import { type Stage, digestOf, uncached } from "../stage.js";
import { checkSchema } from "./crd/crd-schema.js";
import { type Crd, type CrdFile, type CrdVersion, passedOver, readCrds } from "./crd/read-crds.js";
import { CRD_EMPTY_OBJECT } from "./crd/rules.js";
import { type BuiltinKinds, readBuiltinKinds, withKinds } from "./kinds.js";
import {
  type ProjectFile,
  findCrdFiles,
  isDirectory,
  isSpecFile,
  listSpecFiles,
  pathInProject,
  readKnownFile,
  readPackageName,
  readProjectFile,
} from "./project-files.js";
import { EXTERNAL_TYPE, NO_WORKFLOW } from "./rules.js";
import type { WorkflowSpec } from "./workflow-spec.js";
import { readWorkflowsOnce } from "./workflows.js";
import { parseYaml } from "./yaml/parse-yaml.js";
import { isRecord } from "./yaml/values.js";
import type { Place } from "./yaml/yaml-document.js";

/** The contents of a project, and its diagnostics. */
export interface ProjectInput {
  /** Name of the package, or of the folder if there is no package. */
  readonly packageName: string;
  readonly crds: readonly Crd[];
  readonly workflows: readonly WorkflowSpec[];
  /** Texts of the workflow specs. */
  readonly specFiles: readonly ProjectFile[];
  readonly builtin: BuiltinKinds;
  /** Files that external dependents reference, by their name in the spec. */
  readonly externalFiles: ReadonlyMap<string, ExternalFile>;
  readonly diagnostics: readonly Diagnostic[];
}

/** Texts that replace the files on disk, by path in the project. */
export type FileTexts = ReadonlyMap<string, string>;

/** Options of {@link readProject}. */
export interface ReadOptions {
  readonly texts?: FileTexts | undefined;
  /** Caches what is read. Default: no cache */
  readonly stage?: Stage;
  /** Returns the digest of a file if it is known. The file is then only read if no result is cached. Default: unknown */
  knownDigestOf?(file: string): string | undefined;
  /** Called with a description of each step as it starts, for progress output. */
  readonly onStep?: (step: string) => void;
  /** Report what an API server would reject in the CRDs. Default: true */
  readonly checksDefinitions?: boolean;
}

/** Reads the workflow specs of a project, and all CRDs below `crds`. */
export async function readProject(
  project: string,
  {
    texts = new Map(),
    stage = uncached,
    knownDigestOf = () => undefined,
    onStep = () => {},
    checksDefinitions = true,
  }: ReadOptions = {},
): Promise<ProjectInput> {
  const isDefinition = (file: string) => file.startsWith("crds/");
  const specTexts = new Map([...texts].filter(([file]) => isSpecFile(file)));
  const [named, builtin, specs, found] = await Promise.all([
    readPackageName(project),
    readBuiltinKinds(),
    readSpecs(project, specTexts, stage),
    isDirectory(project).then((exists) => (exists ? findCrdFiles(project) : [])),
  ]);
  const listed = Array.isArray(found) ? found : [];
  const crdFiles = [...new Set([...listed, ...[...texts.keys()].filter(isDefinition)])].sort();
  let begun = 0;
  const read = await Promise.all(
    crdFiles.map((file) =>
      readCrdFile(project, file, {
        ...{ stage, text: texts.get(file), digest: knownDigestOf(file) },
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

/** Problems are errors in the CRD of a primary, but only warnings in other CRDs, which usually come from other projects. */
function definitionProblems(crds: readonly Crd[], workflows: readonly WorkflowSpec[]): Diagnostic[] {
  const primaries = new Set(workflows.map(({ primary }) => primary.replace(/\/[^/]*\//, "/")));
  return crds.flatMap((crd) => {
    const problems = crd.findProblems().map((problem) => ({ ...problem, about: subjectOfCrd(crd) }));
    const isOwn = primaries.has(`${crd.group}/${crd.kind}`);
    if (isOwn) return problems;
    return problems
      .filter(({ rule }) => rule !== CRD_EMPTY_OBJECT.id)
      .map((problem) => ({ ...problem, severity: "warning" as const }));
  });
}

async function readSpecs(
  project: string,
  texts: FileTexts,
  stage: Stage,
): Promise<{ workflows: WorkflowSpec[]; files: ProjectFile[]; diagnostics: Diagnostic[] }> {
  const fail = (message: string, hint: string) => ({
    ...{ workflows: [], files: [] },
    diagnostics: [{ ...NO_WORKFLOW.violation, message, hint }],
  });
  const exists = await isDirectory(project);
  if (!exists && texts.size === 0)
    return fail(`folder ${quote(project)} not found`, "set --project to the folder of the project");
  const files = [...new Set([...(exists ? await listSpecFiles(project) : []), ...texts.keys()])].sort();
  if (files.length === 0)
    return fail(
      `workflow.yaml not found in folder ${quote(project)}`,
      'run "gen-operator init DIR --crd FILE" to create a project, or set --project to another folder; "gen-operator types" needs no workflow.yaml',
    );
  const read = await Promise.all(
    files.map((file) => {
      const text = texts.get(file);
      return text === undefined ? readProjectFile(project, file) : { file, text };
    }),
  );
  const parsed = await Promise.all(
    read.map((file) => ("rule" in file ? { workflows: [], diagnostics: [file] } : readWorkflowsOnce(file, stage))),
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
  readonly stage: Stage;
  readonly text: string | undefined;
  readonly digest: string | undefined;
  onRead(): void;
}

async function readCrdFile(
  project: string,
  file: string,
  { stage, text, digest, onRead }: ReadCrdFileOptions,
): Promise<ReadCrdFile> {
  if (text === undefined && digest !== undefined) {
    const known = lazyCrdFile({ file, digest, readText: () => readKnownFile(project, file, digest) }, stage);
    if (known.isRead) {
      onRead();
      return { content: known.read() };
    }
  }
  const found = text === undefined ? await readProjectFile(project, file) : { file, text };
  // Files are loaded concurrently, but parsed one by one, so progress is reported here.
  onRead();
  if ("rule" in found) return { problem: found };
  const source = { file, digest: digestOf(found.text), readText: () => found.text };
  return { content: lazyCrdFile(source, stage).read() };
}

/** The cached part of a CRD, without its schemas. */
interface CrdOutline extends Omit<Crd, "versions" | "document" | "placeOf" | "keyAt" | "findProblems"> {
  readonly versions: readonly Omit<CrdVersion, "schema">[];
}

/** A file whose text is read lazily. */
interface CrdSource {
  readonly file: string;
  /** Digest of the content. */
  readonly digest: string;
  readText(): string;
}

/** A file whose text is only read for schemas, and for results that are not cached. */
interface LazyCrdFile {
  /** True if the result for the file is cached. */
  readonly isRead: boolean;
  /** Returns the CRDs of the file. */
  read(): CrdFile;
}

/** Returns a file of CRDs that is parsed at most once. */
export function lazyCrdFile(source: CrdSource, stage: Stage): LazyCrdFile {
  const { file, digest } = source;
  let content: CrdFile | undefined;
  const read = () => (content ??= readCrds({ file, text: source.readText() }));
  const crdAt = (index: number): Crd => {
    const crd = read().crds[index];
    if (crd === undefined) throw new Error(`${file} has fewer CRDs than it had`);
    return crd;
  };
  const outlineOfFile = stage(
    "crds",
    () => [file, digest],
    () => {
      const { crds, kinds, hasDefinitions, diagnostics } = read();
      return { outlines: crds.map(outlineOf), hasKinds: kinds.length > 0, hasDefinitions, diagnostics };
    },
  );
  const inputsOf = (index: number) => [file, digest, String(index)];
  const placeAt = stage("place of a definition", inputsOf, (index: number): Place => crdAt(index).placeOf());
  const problemsAt = stage("definition", inputsOf, (index: number) => crdAt(index).findProblems());
  return {
    isRead: outlineOfFile.isCached(),
    read() {
      const { outlines, hasKinds, hasDefinitions, diagnostics } = outlineOfFile();
      // OpenAPI documents are not split into lazy schemas.
      if (hasKinds) return read();
      const crds = outlines.map((outline, index) =>
        completed(outline, {
          crd: () => crdAt(index),
          placeOf: () => placeAt(index),
          findProblems: () => problemsAt(index),
        }),
      );
      return { file, crds, kinds: [], hasDefinitions, diagnostics };
    },
  };
}

function outlineOf({
  versions,
  document,
  placeOf: _placeOf,
  keyAt: _keyAt,
  findProblems: _,
  ...outline
}: Crd): CrdOutline {
  return {
    ...outline,
    digest: digestOf(exactJson(document)),
    versions: versions.map(({ schema: _schema, ...version }) => version),
  };
}

interface Completion extends Pick<Crd, "placeOf" | "findProblems"> {
  crd(): Crd;
}

function completed(outline: CrdOutline, { crd, placeOf, findProblems }: Completion): Crd {
  return {
    ...outline,
    versions: outline.versions.map((version, index) => ({
      ...version,
      get schema() {
        return crd().versions[index]!.schema;
      },
    })),
    get document() {
      return crd().document;
    },
    placeOf,
    findProblems,
    keyAt: (path) => crd().keyAt(path),
  };
}

/** A file that an external dependent references for a type or schema. */
export interface ExternalFile {
  /** Path relative to the project. */
  readonly path: string;
  /** Name of the referenced type. Absent if the file contains a schema. */
  readonly typeName?: string;
  /** The schema in the file. */
  readonly schema?: { readonly [keyword: string]: unknown };
  /** Problems of the file. Those without a position concern the reference in the spec. */
  readonly problems: readonly Diagnostic[];
}

/** Reads the files that external dependents reference, by their name in the specs. `texts` replace files on disk. */
async function readExternalFiles(
  project: string,
  workflows: readonly WorkflowSpec[],
  texts: ReadonlyMap<string, string>,
): Promise<ReadonlyMap<string, ExternalFile>> {
  const all = workflows.flatMap(({ dependents }) => [...dependents.values()].flatMap(({ external }) => external ?? []));
  const types = new Set(
    all.flatMap(({ type, desiredType, state }) => [type, desiredType, state?.type].flatMap((each) => each ?? [])),
  );
  const schemas = new Set(all.flatMap(({ schema }) => schema ?? []));
  const readText = (path: string) => readTextOf(path, project, texts);
  const read = [
    ...[...types].map(async (type) => [type, await readType(type, readText)] as const),
    ...[...schemas].map(async (path) => [path, await readSchema(path, readText)] as const),
  ];
  return new Map(await Promise.all(read));
}

type ReadText = (path: string) => Promise<string | Diagnostic>;

async function readType(type: string, readText: ReadText): Promise<ExternalFile> {
  const [path = "", typeName = ""] = type.split("#");
  const text = await readText(path);
  if (typeof text !== "string") return { path, typeName, problems: [text] };
  if (exportsType(text, typeName)) return { path, typeName, problems: [] };
  const hint = didYouMean(typeName, exportedTypesOf(text))?.hint ?? `add: export interface ${typeName} { … }`;
  return {
    path,
    typeName,
    problems: [problem(`type ${quote(typeName)} not found in the exports of ${quote(path)}`, hint)],
  };
}

async function readSchema(path: string, readText: ReadText): Promise<ExternalFile> {
  const text = await readText(path);
  if (typeof text !== "string") return { path, problems: [text] };
  const { documents, diagnostics } = parseYaml(path, text);
  if (diagnostics.length > 0) return { path, problems: diagnostics };
  const [document] = documents;
  const schema = document?.value;
  if (document === undefined || !isRecord(schema) || schema["type"] !== "object" || !isRecord(schema["properties"]))
    return {
      path,
      problems: [problem(`${quote(path)} must be the schema of an object`, "set type: object and properties:")],
    };
  const problems = checkSchema(schema).map(({ path: inside, message }) => ({
    ...problem(message.replace("a CustomResourceDefinition", "an external resource")),
    ...document.valueAt(inside),
  }));
  return { path, schema, problems };
}

async function readTextOf(
  path: string,
  project: string,
  texts: ReadonlyMap<string, string>,
): Promise<string | Diagnostic> {
  const file = pathInProject(project, path);
  if (file === undefined) return problem(`${quote(path)} is outside the project`);
  const text = texts.get(file);
  if (text !== undefined) return text;
  const read = await readProjectFile(project, file);
  return "rule" in read ? problem(read.message) : read.text;
}

function problem(message: string, hint?: string): Diagnostic {
  return { ...EXTERNAL_TYPE.violation, message, ...(hint === undefined ? {} : { hint }) };
}

// Generated code imports the type, so the compiler reports what this text search misses.
function exportsType(text: string, name: string): boolean {
  return exportedTypesOf(text).includes(name) || /\bexport\s+(?:type\s+)?\*\s+from\b/.test(text);
}

function exportedTypesOf(text: string): string[] {
  const declared = text.matchAll(/\bexport\s+(?:declare\s+)?(?:abstract\s+)?(?:interface|type|class|enum)\s+([\w$]+)/g);
  const lists = text.matchAll(/\bexport\s+(?:type\s+)?\{([^}]*)\}/g);
  return [
    ...[...declared].map(([, name = ""]) => name),
    ...[...lists].flatMap(([, list = ""]) => list.match(/[\w$]+/g) ?? []),
  ];
}
