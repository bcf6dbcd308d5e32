import { didYouMean, hasErrors, MOST_FOUND, quote, type Diagnostic } from "../../diagnostic.js";
import { findDefinitionProblems } from "./check-definition.js";
import { checkShape } from "./check-shape.js";
import { findUselessScalePaths } from "./check-subresources.js";
import { checkSchema, findInexactNumbers, withoutNulls } from "./schema/check-schema.js";
import {
  findRoundedNumbers,
  numberOfInt64,
  parseInt64,
  setAt,
  withExactIntegers,
  type ExactInteger,
} from "./schema/exact-integers.js";
import type { Crd, CrdVersion } from "./crd.js";
import { isRecord } from "../yaml/json.js";
import { describeValue } from "../yaml/describe-value.js";
import type { YamlDocument, YamlPath } from "../yaml/yaml-document.js";

// The rules of the API server for what ends up in the names of files and types.
const LABEL = {
  pattern: /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/,
  words: "be at most 63 lower-case letters, digits and hyphens, with a letter first and no hyphen last",
};
const KIND = {
  pattern: /^[A-Za-z](?:[-A-Za-z0-9]{0,61}[A-Za-z0-9])?$/,
  words: "be at most 63 letters, digits and hyphens, with a letter first and no hyphen last",
};
const DOMAIN = {
  pattern: /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$/,
  words: "be a domain such as example.com",
};

type Fields = { readonly [key: string]: unknown };

/** Reads one CustomResourceDefinition and collects what is wrong with it. */
export class CrdReader {
  readonly diagnostics: Diagnostic[] = [];
  readonly #document: YamlDocument;
  readonly #root: YamlPath;
  readonly #integers: ExactInteger[] = [];

  constructor(document: YamlDocument, root: YamlPath) {
    this.#document = document;
    this.#root = root;
  }

  /** Returns the definition; nothing if anything is wrong. */
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
        "crd-field",
        "apiextensions.k8s.io/v1 has no preserveUnknownFields: true",
        "write x-kubernetes-preserve-unknown-fields: true at the root of the schema",
      );
    for (const { kind, path, message } of checkShape(crd))
      if (kind === "type" && !isReadHere(path)) this.#fail(path, "crd-field", `${String(path.at(-1))} ${message}`);
    const singular = this.#optionalName(names, { field: "singular", in: at, ...LABEL });
    const listKind = this.#optionalName(names, { field: "listKind", in: at, ...KIND });
    const versions = this.#versions(spec);
    const { group = "", kind = "", plural = "", scope = "Namespaced" } = read;
    if (!hasErrors(this.diagnostics)) this.#checkName(crd, `${plural}.${group}`);
    if (hasErrors(this.diagnostics)) return undefined;
    const [document, root] = [this.#document, this.#root];
    return {
      file: document.file,
      ...{ group, kind, plural, scope, versions },
      singular: singular ?? kind.toLowerCase(),
      listKind: listKind ?? `${kind}List`,
      document: this.#integers.length === 0 ? crd : withExactIntegers(crd, this.#integers),
      // Positions are costly, and few definitions are ever named by a message.
      placeOf: () => document.valueAt([...root, "metadata", "name"]),
      keyAt: (path) => document.keyAt([...root, ...path]),
      findProblems: () => findDefinitionProblems({ crd, document, root }),
    };
  }

  #failVersion(apiVersion: unknown): void {
    if (apiVersion !== "apiextensions.k8s.io/v1beta1") {
      const found = describeValue(apiVersion);
      this.#fail(["apiVersion"], "crd-version", `expected apiVersion apiextensions.k8s.io/v1, found ${found}`);
      return;
    }
    this.#fail(
      ["apiVersion"],
      "crd-version",
      "apiextensions.k8s.io/v1beta1 is not served since Kubernetes 1.22",
      "write apiVersion: apiextensions.k8s.io/v1, and move spec.validation, spec.subresources and\n" +
        "spec.additionalPrinterColumns into each entry of spec.versions (spec.validation.openAPIV3Schema becomes\n" +
        "schema.openAPIV3Schema, JSONPath becomes jsonPath)",
    );
  }

  #scope(spec: Fields): Crd["scope"] | undefined {
    const { scope } = spec;
    if (scope === "Namespaced" || scope === "Cluster") return scope;
    const hint = typeof scope === "string" ? didYouMean(scope, ["Namespaced", "Cluster"])?.hint : undefined;
    this.#fail(["spec", "scope"], "crd-field", `expected Namespaced or Cluster, found ${describeValue(scope)}`, hint);
    return undefined;
  }

  #versions(spec: Fields): CrdVersion[] {
    const { versions } = spec;
    if (!Array.isArray(versions) || versions.length === 0) {
      const found = Array.isArray(versions) ? "an empty list" : describeValue(versions);
      this.#fail(["spec", "versions"], "crd-field", `expected a list of versions, found ${found}`);
      return [];
    }
    const read = versions.flatMap(
      (version: unknown, index) => this.#version(version, ["spec", "versions", index]) ?? [],
    );
    const names = read.map(({ name }) => name);
    names.forEach((name, index) => {
      if (names.indexOf(name) < index)
        this.#fail(["spec", "versions", index, "name"], "crd-field", `version ${quote(name)} is defined twice`);
    });
    const stored = read.filter(({ isStorage }) => isStorage).length;
    if (read.length === versions.length && stored !== 1)
      this.#fail(["spec", "versions"], "crd-field", `exactly one version must have storage: true, ${stored} have`);
    return read;
  }

  #version(version: unknown, path: YamlPath): CrdVersion | undefined {
    if (!isRecord(version)) {
      this.#fail(path, "crd-field", `expected a version, found ${describeValue(version)}`);
      return undefined;
    }
    const name = this.#name(version, { field: "name", in: path, ...LABEL });
    const schema = this.#schema(version, path, name ?? "");
    const { served, storage, deprecated, deprecationWarning, subresources } = version;
    for (const [field, value] of Object.entries({ served, storage }))
      if (typeof value !== "boolean")
        this.#fail([...path, field], "crd-field", `expected ${field}: true or false, found ${describeValue(value)}`);
    if (name === undefined || schema === undefined) return undefined;
    for (const { path: inside, message, hint } of findUselessScalePaths(subresources, schema))
      this.#add("warning", [...path, "subresources", ...inside], ["crd-subresource", message, hint]);
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
      this.#fail(
        [...path, "schema"],
        "crd-schema",
        `version ${quote(name)} has no schema.openAPIV3Schema, which apiextensions.k8s.io/v1 requires`,
      );
      return undefined;
    }
    const at: YamlPath = [...path, "schema", "openAPIV3Schema"];
    const problems = checkSchema(root);
    for (const { path: rest, message } of problems) this.#fail([...at, ...rest], "crd-schema", message);
    if (problems.length > 0) return root;
    for (const { path: rest, message } of findInexactNumbers(root))
      this.#add("warning", [...at, ...rest], ["inexact-number", message]);
    if (!this.#readIntegers(written as object, at)) return root;
    return withoutNulls(written) as Fields;
  }

  /** Replaces the integers of a schema that JavaScript rounds by numbers within int64; tells whether there are any. */
  #readIntegers(schema: object, at: YamlPath): boolean {
    const before = this.#integers.length;
    for (const path of findRoundedNumbers(schema)) {
      const value = parseInt64(this.#document.plainTextAt([...this.#root, ...at, ...path]));
      if (value === undefined) continue;
      setAt(schema, path, numberOfInt64(value));
      this.#integers.push({ path: [...at, ...path], value });
    }
    return this.#integers.length > before;
  }

  #checkName({ metadata }: Fields, expected: string): void {
    const name = isRecord(metadata) ? metadata["name"] : undefined;
    if (name === expected) return;
    this.#fail(
      ["metadata", "name"],
      "crd-name",
      `metadata.name must be <plural>.<group>: expected ${quote(expected)}, found ${describeValue(name)}`,
    );
  }

  #record(parent: Fields, field: string, path: YamlPath): Fields | undefined {
    const value = parent[field];
    if (isRecord(value)) return value;
    this.#fail([...path, field], "crd-field", `expected an object, found ${describeValue(value)}`);
    return undefined;
  }

  #optionalName(parent: Fields, rule: NameRule): string | undefined {
    return parent[rule.field] === undefined || parent[rule.field] === "" ? undefined : this.#name(parent, rule);
  }

  #name(parent: Fields, { field, in: path, pattern, words }: NameRule): string | undefined {
    const value = parent[field];
    if (typeof value === "string" && pattern.test(value)) return value;
    this.#fail([...path, field], "crd-name", `${field} must ${words}, found ${describeValue(value)}`);
    return undefined;
  }

  // eslint-style overloads would hide that a hint is rare.
  #fail(path: YamlPath, rule: string, ...[message, hint]: [message: string, hint?: string | undefined]): void {
    this.#add("error", path, [rule, message, hint]);
  }

  #add(
    severity: Diagnostic["severity"],
    path: YamlPath,
    [rule, message, hint]: [rule: string, message: string, hint?: string | undefined],
  ): void {
    if (this.diagnostics.length === MOST_FOUND) return;
    const place = this.#document.valueAt([...this.#root, ...path]);
    this.diagnostics.push({ severity, rule, message, ...place, ...(hint === undefined ? {} : { hint }) });
  }
}

interface NameRule {
  readonly field: string;
  readonly in: YamlPath;
  readonly pattern: RegExp;
  readonly words: string;
}

/** Tells whether the reader itself says what is wrong with a field. */
function isReadHere(path: YamlPath): boolean {
  const field = path.filter((step) => typeof step === "string").join(".");
  return READ_HERE.has(field);
}

const READ_HERE: ReadonlySet<string> = new Set([
  ...["apiVersion", "kind", "spec", "spec.group", "spec.scope", "spec.versions"],
  ...["spec.names", "spec.names.kind", "spec.names.plural", "spec.names.singular", "spec.names.listKind"],
  ...["spec.versions.name", "spec.versions.served", "spec.versions.storage", "spec.versions.schema"],
]);

// What is wrong with the paths is found by the check of the definition.
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
