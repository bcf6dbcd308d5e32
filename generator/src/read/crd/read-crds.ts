import { int64Number } from "@gen-operator/schema";
import {
  type Diagnostic,
  MOST_FOUND,
  type Rule,
  didYouMean,
  hasErrors,
  quote,
  subjectOfCrd,
} from "../../diagnostic.js";
import { type BuiltinKind, readOpenApiKinds } from "../kinds.js";
import type { ProjectFile } from "../project-files.js";
import type { Inputs } from "../read-inputs.js";
import { parseManifests } from "../yaml/parse-yaml.js";
import { describeValue, isRecord } from "../yaml/values.js";
import type { Place, YamlDocument, YamlPath } from "../yaml/yaml-document.js";
import { checkShape, findDefinitionProblems } from "./check-crd.js";
import {
  type ExactInteger,
  checkSchema,
  findInexactNumbers,
  findRoundedNumbers,
  parseInt64,
  withIntegers,
  withoutNulls,
} from "./crd-schema.js";
import {
  CRD_EMPTY_OBJECT,
  CRD_FIELD,
  CRD_NAME,
  CRD_SCHEMA,
  CRD_SUBRESOURCE,
  CRD_VERSION,
  HELM_TEMPLATE,
  INEXACT_NUMBER,
  NOT_A_CRD,
  NO_CRDS,
} from "./rules.js";

/** A CustomResourceDefinition with validated names and versions. */
export interface Crd {
  readonly file: string;
  readonly group: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly listKind: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly versions: readonly CrdVersion[];
  /** Digest of the whole definition. Absent if results are not cached. */
  readonly digest?: string;
  /** The whole definition as written. Integers that JavaScript would round are bigints. */
  readonly document: object;
  /** Returns the position of the definition's name. */
  placeOf(): Place;
  /** Returns the position of a key in the definition, or of its nearest existing ancestor. */
  keyAt(path: YamlPath): Place;
  /** Returns what an API server rejects or drops of the definition as errors, and objects that it prunes and rules that `parse` skips as warnings. */
  findProblems(): readonly Diagnostic[];
}

/** One version of a CustomResourceDefinition. */
export interface CrdVersion {
  readonly name: string;
  readonly isServed: boolean;
  readonly isStorage: boolean;
  readonly hasStatusSubresource: boolean;
  /** Paths of the scale subresource. Absent if there is none. */
  readonly scale?: {
    readonly specReplicasPath: string;
    readonly statusReplicasPath: string;
    readonly labelSelectorPath?: string;
  };
  readonly deprecationWarning?: string;
  /** Additional fields for field selectors, for example `spec.color`. */
  readonly selectableFields: readonly string[];
  readonly schema: { readonly [keyword: string]: unknown };
}

/** A value of a document, with its path. */
interface Located {
  readonly value: unknown;
  readonly path: YamlPath;
}

/** The CRDs of a file, and its diagnostics. */
export interface CrdFile {
  readonly file: string;
  readonly crds: readonly Crd[];
  /** Kinds of an OpenAPI document. */
  readonly kinds: readonly BuiltinKind[];
  /** True if the file contains a CRD, valid or not, or describes kinds without a CRD. */
  readonly hasDefinitions: boolean;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the CRDs in all documents of a file, including lists. Other kinds are skipped. */
export function readCrds({ file, text }: ProjectFile): CrdFile {
  const kinds = readOpenApiKinds(file, text);
  if (kinds !== undefined) return { file, crds: [], kinds, hasDefinitions: kinds.length > 0, diagnostics: [] };
  const { documents, diagnostics: problems } = parseManifests(file, text);
  const diagnostics = [...problems];
  const crds: Crd[] = [];
  let hasDefinitions = hasErrors(problems);
  for (const document of documents)
    for (const { value, path } of objectsOf(document)) {
      if (!isRecord(value) || value["kind"] !== "CustomResourceDefinition") continue;
      hasDefinitions = true;
      const reader = new CrdReader(document, path);
      const crd = reader.read(value);
      diagnostics.push(...reader.diagnostics);
      if (crd !== undefined) crds.push(crd);
    }
  const template = hasErrors(diagnostics) ? helmTemplateProblem({ file, text }) : undefined;
  if (template !== undefined) return { file, crds: [], kinds: [], hasDefinitions: true, diagnostics: [template] };
  return { file, crds, kinds: [], hasDefinitions, diagnostics };
}

/** A template action at the start of a YAML line or value. Descriptions may contain actions within a text. */
const HELM_ACTION = /^[ \t]*(?:- )?(?:[^\s#'"]+:[ \t]+)?(?=\{\{)/m;

/** Returns a diagnostic about a Helm template, which replaces its YAML errors; undefined if the file is not a template. */
function helmTemplateProblem({ file, text }: ProjectFile): Diagnostic | undefined {
  const found = HELM_ACTION.exec(text);
  if (found === null) return undefined;
  const before = text.slice(0, found.index + found[0].length).split("\n");
  return {
    ...HELM_TEMPLATE.violation,
    message: `the file is a Helm template, not a manifest: found "{{"`,
    position: { file, line: before.length, column: (before.at(-1) ?? "").length + 1 },
    hint: "render the chart and read the result: helm template CHART --include-crds | gen-operator types --out DIR -",
  };
}

/** Returns the objects of a document: the document itself, or the items of a list. */
function objectsOf({ value }: YamlDocument): Located[] {
  if (!isRecord(value)) return [];
  const { kind, items } = value;
  if (!Array.isArray(items) || typeof kind !== "string" || !kind.endsWith("List")) return [{ value, path: [] }];
  return items.map((item: unknown, index) => ({ value: item, path: ["items", index] }));
}

/** The CRDs of several files, and their diagnostics. */
interface CrdFiles {
  readonly crds: readonly Crd[];
  /** Kinds of OpenAPI documents. */
  readonly kinds: readonly BuiltinKind[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the CRDs of the given files. Reports an error if they contain none. `onFile` is called with each file before it is read. */
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
    diagnostics.push({ ...NO_CRDS.violation, message: "no CustomResourceDefinition found in the files" });
  return { crds, kinds, diagnostics };
}

// An API server has accepted the CRDs of a cluster, so their problems are only warnings.
function problemsOf(crd: Crd): Diagnostic[] {
  const isServed = crd.file.startsWith("<cluster>");
  return crd
    .findProblems()
    .filter(({ rule }) => rule !== CRD_EMPTY_OBJECT.id)
    .map((problem) => (isServed ? { ...problem, severity: "warning" as const } : problem));
}

/** Returns the diagnostic for a file without CRDs. */
export function passedOver({ file }: CrdFile): Diagnostic {
  return {
    ...NOT_A_CRD.violation,
    message: "no CustomResourceDefinition found; the file is ignored",
    position: { file, line: 1, column: 1 },
  };
}

// The API server's rules for names that become part of file and type names.
const LABEL = {
  pattern: /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/,
  words: "consist of at most 63 lower-case letters, digits and hyphens, start with a letter and not end with a hyphen",
};
const KIND = {
  pattern: /^[A-Za-z](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?$/,
  words: "consist of at most 63 letters, digits and hyphens, start with a letter and not end with a hyphen",
};
const DOMAIN = {
  pattern: /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/,
  words: "be a domain such as example.com",
};

type Fields = { readonly [key: string]: unknown };

/** Reads one CustomResourceDefinition and collects its problems. */
class CrdReader {
  readonly diagnostics: Diagnostic[] = [];
  readonly #document: YamlDocument;
  readonly #root: YamlPath;
  readonly #integers: ExactInteger[] = [];

  constructor(document: YamlDocument, root: YamlPath) {
    this.#document = document;
    this.#root = root;
  }

  /** Returns the definition; undefined if it has errors. */
  read(crd: Fields): Crd | undefined {
    if (crd["apiVersion"] !== "apiextensions.k8s.io/v1") {
      this.#failVersion(crd["apiVersion"]);
      return undefined;
    }
    const spec = this.#record(crd, "spec", []);
    if (spec === undefined) return undefined;
    const names = this.#record(spec, "names", ["spec"]) ?? {};
    const at: YamlPath = ["spec", "names"];
    const read = {
      group: this.#name(spec, { field: "group", in: ["spec"], ...DOMAIN }),
      kind: this.#name(names, { field: "kind", in: at, ...KIND }),
      plural: this.#name(names, { field: "plural", in: at, ...LABEL }),
      scope: this.#scope(spec),
    };
    if (spec["preserveUnknownFields"] === true)
      this.#fail(
        ["spec", "preserveUnknownFields"],
        CRD_FIELD,
        "preserveUnknownFields: true is forbidden in apiextensions.k8s.io/v1",
        "set x-kubernetes-preserve-unknown-fields: true at the root of the schema",
      );
    for (const { kind, path, message } of checkShape(crd))
      if (kind === "type" && !isReadHere(path)) this.#fail(path, CRD_FIELD, `${String(path.at(-1))} ${message}`);
    const singular = this.#optionalName(names, { field: "singular", in: at, ...LABEL });
    const listKind = this.#optionalName(names, { field: "listKind", in: at, ...KIND });
    const versions = this.#versions(spec);
    const { group = "", kind = "", plural = "", scope = "Namespaced" } = read;
    if (!hasErrors(this.diagnostics)) this.#checkName(crd, `${plural}.${group}`);
    if (hasErrors(this.diagnostics)) return undefined;
    const about = subjectOfCrd({ group, kind });
    this.diagnostics.forEach((each, index) => (this.diagnostics[index] = { ...each, about }));
    const [document, root, integers] = [this.#document, this.#root, this.#integers];
    const within = () => withIntegers(crd, integers, int64Number);
    return {
      file: document.file,
      ...{ group, kind, plural, scope, versions },
      singular: singular ?? kind.toLowerCase(),
      listKind: listKind ?? `${kind}List`,
      document: withIntegers(crd, integers, (value) => value),
      // Compute positions lazily, because they are expensive and rarely needed.
      placeOf: () => document.valueAt([...root, "metadata", "name"]),
      keyAt: (path) => document.keyAt([...root, ...path]),
      findProblems: () => findDefinitionProblems({ crd: within(), document, root }),
    };
  }

  #failVersion(apiVersion: unknown): void {
    if (apiVersion !== "apiextensions.k8s.io/v1beta1") {
      const found = describeValue(apiVersion);
      this.#fail(["apiVersion"], CRD_VERSION, `apiVersion must be apiextensions.k8s.io/v1, found ${found}`);
      return;
    }
    this.#fail(
      ["apiVersion"],
      CRD_VERSION,
      "apiextensions.k8s.io/v1beta1 is not served since Kubernetes 1.22",
      "set apiVersion: apiextensions.k8s.io/v1, and move spec.validation, spec.subresources and\n" +
        "spec.additionalPrinterColumns into each entry of spec.versions (spec.validation.openAPIV3Schema becomes\n" +
        "schema.openAPIV3Schema, JSONPath becomes jsonPath)",
    );
  }

  #scope(spec: Fields): Crd["scope"] | undefined {
    const { scope } = spec;
    if (scope === "Namespaced" || scope === "Cluster") return scope;
    const hint = typeof scope === "string" ? didYouMean(scope, ["Namespaced", "Cluster"])?.hint : undefined;
    this.#fail(
      ["spec", "scope"],
      CRD_FIELD,
      `scope must be Namespaced or Cluster, found ${describeValue(scope)}`,
      hint,
    );
    return undefined;
  }

  #versions(spec: Fields): CrdVersion[] {
    const { versions } = spec;
    if (!Array.isArray(versions) || versions.length === 0) {
      const found = Array.isArray(versions) ? "an empty list" : describeValue(versions);
      this.#fail(["spec", "versions"], CRD_FIELD, `versions must be a list with at least one version, found ${found}`);
      return [];
    }
    const read = versions.flatMap(
      (version: unknown, index) => this.#version(version, ["spec", "versions", index]) ?? [],
    );
    const names = read.map(({ name }) => name);
    names.forEach((name, index) => {
      if (names.indexOf(name) < index)
        this.#fail(["spec", "versions", index, "name"], CRD_FIELD, `duplicate version ${quote(name)}`);
    });
    const stored = read.filter(({ isStorage }) => isStorage).length;
    if (read.length === versions.length && stored !== 1)
      this.#fail(["spec", "versions"], CRD_FIELD, `exactly one version must set storage: true, found ${stored}`);
    return read;
  }

  #version(version: unknown, path: YamlPath): CrdVersion | undefined {
    if (!isRecord(version)) {
      this.#fail(path, CRD_FIELD, `a version must be an object, found ${describeValue(version)}`);
      return undefined;
    }
    const name = this.#name(version, { field: "name", in: path, ...LABEL });
    const schema = this.#schema(version, path, name ?? "");
    const { served, storage, deprecated, deprecationWarning, subresources } = version;
    for (const [field, value] of Object.entries({ served, storage }))
      if (typeof value !== "boolean")
        this.#fail([...path, field], CRD_FIELD, `${field} must be true or false, found ${describeValue(value)}`);
    if (name === undefined || schema === undefined) return undefined;
    for (const { path: inside, message, hint } of findUselessScalePaths(subresources, schema)) {
      const warning = { ...CRD_SUBRESOURCE.violation, severity: "warning" } as const;
      this.#add(warning, [...path, "subresources", ...inside], message, hint);
    }
    return {
      name,
      schema,
      isServed: served === true,
      isStorage: storage === true,
      hasStatusSubresource: isRecord(subresources) && isRecord(subresources["status"]),
      ...scaleOf(subresources),
      selectableFields: selectableFieldsOf(version),
      ...(deprecated === true
        ? { deprecationWarning: typeof deprecationWarning === "string" ? deprecationWarning : `${name} is deprecated` }
        : {}),
    };
  }

  #schema(version: Fields, path: YamlPath, name: string): Fields | undefined {
    const { schema } = version;
    const written = isRecord(schema) ? schema["openAPIV3Schema"] : undefined;
    const root = withoutNulls(written);
    if (!isRecord(root)) {
      this.#fail([...path, "schema"], CRD_SCHEMA, `schema.openAPIV3Schema is required in version ${quote(name)}`);
      return undefined;
    }
    const at: YamlPath = [...path, "schema", "openAPIV3Schema"];
    const problems = checkSchema(root);
    for (const { path: rest, message } of problems) this.#fail([...at, ...rest], CRD_SCHEMA, message);
    if (problems.length > 0) return root;
    for (const { path: rest, message } of findInexactNumbers(root))
      this.#add(INEXACT_NUMBER.violation, [...at, ...rest], message, undefined);
    for (const path of findRoundedNumbers(written)) {
      const value = parseInt64(this.#document.plainTextAt([...this.#root, ...at, ...path]));
      if (value !== undefined) this.#integers.push({ path: [...at, ...path], value });
    }
    return root;
  }

  #checkName({ metadata }: Fields, expected: string): void {
    const name = isRecord(metadata) ? metadata["name"] : undefined;
    if (name === expected) return;
    this.#fail(
      ["metadata", "name"],
      CRD_NAME,
      `metadata.name must be ${quote(expected)} (<plural>.<group>), found ${describeValue(name)}`,
    );
  }

  #record(parent: Fields, field: string, path: YamlPath): Fields | undefined {
    const value = parent[field];
    if (isRecord(value)) return value;
    this.#fail([...path, field], CRD_FIELD, `${field} must be an object, found ${describeValue(value)}`);
    return undefined;
  }

  #optionalName(parent: Fields, rule: NameRule): string | undefined {
    return parent[rule.field] === undefined || parent[rule.field] === "" ? undefined : this.#name(parent, rule);
  }

  #name(parent: Fields, { field, in: path, pattern, words }: NameRule): string | undefined {
    const value = parent[field];
    if (typeof value === "string" && pattern.test(value)) return value;
    this.#fail([...path, field], CRD_NAME, `${field} must ${words}, found ${describeValue(value)}`);
    return undefined;
  }

  // The hint is optional; few errors have one.
  #fail(path: YamlPath, rule: Rule<"error">, ...[message, hint]: [message: string, hint?: string | undefined]): void {
    this.#add(rule.violation, path, message, hint);
  }

  #add(
    violation: Pick<Diagnostic, "severity" | "rule">,
    path: YamlPath,
    message: string,
    hint: string | undefined,
  ): void {
    if (this.diagnostics.length === MOST_FOUND) return;
    const place = this.#document.valueAt([...this.#root, ...path]);
    this.diagnostics.push({ ...violation, message, ...place, ...(hint === undefined ? {} : { hint }) });
  }
}

interface NameRule {
  readonly field: string;
  readonly in: YamlPath;
  readonly pattern: RegExp;
  readonly words: string;
}

/** Returns whether the reader itself reports problems of a field. */
function isReadHere(path: YamlPath): boolean {
  const field = path.filter((step) => typeof step === "string").join(".");
  return READ_HERE.has(field);
}

const READ_HERE: ReadonlySet<string> = new Set([
  ...["apiVersion", "kind", "spec", "spec.group", "spec.scope", "spec.versions"],
  ...["spec.names", "spec.names.kind", "spec.names.plural", "spec.names.singular", "spec.names.listKind"],
  ...["spec.versions.name", "spec.versions.served", "spec.versions.storage", "spec.versions.schema"],
]);

// The validation of the definition reports invalid paths.
function scaleOf(subresources: unknown): Pick<CrdVersion, "scale"> {
  const scale = isRecord(subresources) ? subresources["scale"] : undefined;
  if (!isRecord(scale)) return {};
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = scale;
  if (typeof specReplicasPath !== "string" || typeof statusReplicasPath !== "string") return {};
  const selector = typeof labelSelectorPath === "string" && labelSelectorPath !== "" ? { labelSelectorPath } : {};
  return { scale: { specReplicasPath, statusReplicasPath, ...selector } };
}

function selectableFieldsOf({ selectableFields }: Fields): string[] {
  return (Array.isArray(selectableFields) ? selectableFields : []).flatMap((field: unknown) =>
    isRecord(field) && typeof field["jsonPath"] === "string" ? [field["jsonPath"].replace(/^\./, "")] : [],
  );
}

type Schema = { readonly [keyword: string]: unknown };

/** A path of the scale subresource that is not in the schema. */
interface UselessPath {
  readonly path: YamlPath;
  readonly message: string;
  readonly hint?: string;
}

const SCALE_PATHS = ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"];

/** Reports paths of the scale subresource that lead to no field, which the API server accepts. */
function findUselessScalePaths(subresources: unknown, schema: Schema): UselessPath[] {
  const scale = isRecord(subresources) ? subresources["scale"] : undefined;
  if (!isRecord(scale)) return [];
  return SCALE_PATHS.flatMap((name): UselessPath[] => {
    const path = scale[name];
    // The API server treats an index as part of a name.
    const fields = typeof path === "string" && path.startsWith(".") ? path.slice(1).split(".") : [];
    const known = fields.length === 0 ? undefined : fieldsInstead(schema, fields);
    if (known === undefined) return [];
    const text = textOf(fields);
    const message = `${name} refers to ${quote(text)}, which is not in the schema, so the scale subresource lacks that value`;
    return [{ path: ["scale", name], message, ...didYouMean(text, known.map(textOf)) }];
  });
}

function textOf(fields: readonly string[]): string {
  return `.${fields.join(".")}`;
}

/** Returns the fields that exist instead of a missing one; undefined if the path may lead to a field. */
function fieldsInstead(
  schema: Schema,
  [first, ...rest]: readonly string[],
): readonly (readonly string[])[] | undefined {
  if (first === undefined || schema["x-kubernetes-preserve-unknown-fields"] === true) return undefined;
  const { additionalProperties } = schema;
  if (additionalProperties === true) return undefined;
  const properties = isRecord(schema["properties"]) ? schema["properties"] : {};
  const field = Object.hasOwn(properties, first) ? properties[first] : additionalProperties;
  if (!isRecord(field)) return Object.keys(properties).map((name) => [name]);
  return fieldsInstead(field, rest)?.map((path) => [first, ...path]);
}
