import { type JsonObject, type JsonValue, deepEqual, isJsonObject } from "@gen-operator/schema";
import type { RawSchema } from "../model/project-model.js";
import { withoutNulls } from "../read/crd/crd-schema.js";
import type { Crd, CrdVersion } from "../read/crd/read-crds.js";
import { type AddChange, type Change, collectInto } from "./change.js";
import { changeText, compareSchemas, text } from "./compare-schemas.js";
import { type Parts, partsOfCrd, partsOfVersion } from "./normal-schema.js";

/** Compares the CRDs of two states of a project, version by version. */
export function compareCrds(before: readonly Crd[], after: readonly Crd[]): Change[] {
  const changes: Change[] = [];
  const [former, current] = [byName(before), byName(after)];
  for (const [name, crd] of former) {
    const now = current.get(name);
    if (now === undefined)
      collectInto(changes, name)("breaking", "", "removed; deleting the CRD deletes all its objects", {
        consequence: "valuesDropped",
        check: "unhandled",
      });
    else compareCrd(crd, now, changes);
  }
  for (const name of current.keys())
    if (!former.has(name)) collectInto(changes, name)("compatible", "", "added", { check: "unhandled" });
  return changes;
}

function compareCrd(before: Crd, after: Crd, changes: Change[]): void {
  const name = nameOf(before);
  compareParts([partsOfCrd(before), partsOfCrd(after)], CRD_RULES, collectInto(changes, name));
  const versions = new Map(after.versions.map((version) => [version.name, version]));
  const former = new Set(before.versions.map((version) => version.name));
  for (const version of before.versions) {
    const now = versions.get(version.name);
    const add = collectInto(changes, `${name} ${version.name}`);
    if (now === undefined) reportRemoved(version, add);
    else {
      compareParts([partsOfVersion(before, version), partsOfVersion(after, now)], VERSION_RULES, add);
      compareSchemas(exactSchemaOf(before, version), exactSchemaOf(after, now), add);
    }
  }
  for (const { name: version, isServed } of after.versions)
    if (!former.has(version))
      collectInto(changes, `${name} ${version}`)("compatible", "", isServed ? "added" : "added, and not served");
}

/** Returns the schema of a version with the exact integers of the definition. */
function exactSchemaOf({ document }: Crd, { name, schema }: CrdVersion): RawSchema {
  const { spec } = document as { spec?: { versions?: { name: string; schema?: { openAPIV3Schema?: unknown } }[] } };
  const written = spec?.versions?.find((version) => version.name === name)?.schema?.openAPIV3Schema;
  return (withoutNulls(written) as RawSchema | undefined) ?? schema;
}

function reportRemoved({ isStorage, isServed }: CrdVersion, add: AddChange): void {
  if (isStorage)
    add(
      "breaking",
      "",
      "removed; it was the stored version: migrate the objects and status.storedVersions first, otherwise the API server rejects the CRD",
      { consequence: "behaviorChanges", check: "storedVersionRemoval" },
    );
  else if (isServed)
    add("breaking", "", "removed; requests for it fail", { consequence: "behaviorChanges", check: "unhandled" });
  else add("compatible", "", "removed");
}

/** Reports a changed part. `path` identifies it in the report, and is "" for the version as a whole. */
type PartRule = (
  change: { readonly before: JsonValue | undefined; readonly after: JsonValue | undefined },
  add: AddPart,
) => void;
type AddPart = (effect: Change["effect"], path: string, message: string) => void;

const FAIL = "commands and scripts that use it fail";

const CRD_RULES: { readonly [path: string]: PartRule } = {
  "spec.scope": ({ before, after }, add) =>
    add(
      "breaking",
      "spec.scope",
      `${String(before)} → ${String(after)}; the API server rejects it: delete the CRD and its objects first`,
    ),
  "spec.names.kind": ({ before, after }, add) =>
    add(
      "breaking",
      "spec.names.kind",
      `${String(before)} → ${String(after)}; the API server rejects it: delete the CRD and its objects first`,
    ),
  "spec.names.listKind": ({ before, after }, add) =>
    add(
      "breaking",
      "spec.names.listKind",
      `${String(before)} → ${String(after)}; clients that decode lists by kind fail`,
    ),
  "spec.names.singular": ({ before, after }, add) =>
    add("breaking", "spec.names.singular", `${String(before)} → ${String(after)}; ${FAIL} the former name`),
  "spec.names.shortNames": (change, add) =>
    compareSets(change, {
      removed: (name) => add("breaking", "spec.names.shortNames", `without ${name}; ${FAIL}`),
      added: (name) => add("compatible", "spec.names.shortNames", `with ${name}`),
    }),
  "spec.names.categories": (change, add) =>
    compareSets(change, {
      removed: (name) =>
        add("compatible", "spec.names.categories", `without ${name}; kubectl get ${name} no longer lists the objects`),
      added: (name) => add("compatible", "spec.names.categories", `with ${name}`),
    }),
  "spec.conversion.strategy": ({ before, after }, add) =>
    add(
      "breaking",
      "spec.conversion.strategy",
      `${String(before)} → ${String(after)}; ${after === "Webhook" ? "requests for another version than the stored one fail unless the webhook answers" : "objects of other versions keep their fields as they are, and only apiVersion changes"}`,
    ),
  "spec.conversion.webhook": ({ before, after }, add) => {
    // A changed strategy is reported by its own rule.
    const path = "spec.conversion.webhook";
    if (before === undefined || after === undefined)
      return add("compatible", path, before === undefined ? "added" : "removed");
    if (deepEqual(withoutAuthority(before), withoutAuthority(after)))
      return add("compatible", path, "the certificate authority (caBundle) of the webhook changed");
    add("breaking", path, `${text(before)} → ${text(after)}; conversions fail unless the webhook answers there`);
  },
};

function withoutAuthority(webhook: JsonValue): JsonValue {
  if (!isJsonObject(webhook) || !isJsonObject(webhook["clientConfig"])) return webhook;
  const { caBundle: _, ...clientConfig } = webhook["clientConfig"];
  return { ...webhook, clientConfig };
}

const VERSION_RULES: { readonly [path: string]: PartRule } = {
  served: ({ after }, add) =>
    after === true
      ? add("compatible", "", "is served now")
      : add("breaking", "", "is no longer served; requests for it fail"),
  storage: ({ after }, add) =>
    add(
      "compatible",
      "",
      after === true
        ? "is the stored version now; stored objects are rewritten with their next write"
        : "is no longer the stored version",
    ),
  deprecated: ({ after }, add) =>
    add("compatible", "", after === true ? "is deprecated: clients get a warning" : "is no longer deprecated"),
  deprecationWarning: ({ after }, add) =>
    add(
      "compatible",
      "",
      after === undefined ? "has the default deprecation warning" : `warns clients: ${String(after)}`,
    ),
  "subresources.status": ({ after }, add) =>
    add(
      "breaking",
      "subresources.status",
      after === undefined
        ? "is no longer a subresource; writes of the status fail"
        : "is a subresource now; ordinary writes no longer change it",
    ),
  "subresources.scale": ({ before, after }, add) => {
    if (before === undefined) return add("compatible", "subresources.scale", "is a subresource now");
    if (after === undefined)
      return add(
        "breaking",
        "subresources.scale",
        "is no longer a subresource; kubectl scale and HorizontalPodAutoscalers fail",
      );
    for (const path of ["specReplicasPath", "statusReplicasPath", "labelSelectorPath"]) {
      const [former, now] = [before, after].map((scale) => (scale as JsonObject)[path]);
      if (former === now) continue;
      const message = changeText(path, former, now);
      if (former === undefined) add("compatible", "subresources.scale", message);
      else
        add(
          "breaking",
          "subresources.scale",
          `${message}; kubectl scale and HorizontalPodAutoscalers use another field`,
        );
    }
  },
  additionalPrinterColumns: ({ before, after }, add) => {
    const [former, current] = [namedColumns(before), namedColumns(after)];
    for (const [name, column] of former) {
      const now = current.get(name);
      if (now === undefined) add("compatible", "additionalPrinterColumns", `without the column ${name}`);
      else if (now !== column) add("compatible", "additionalPrinterColumns", `the column ${name}: ${column} → ${now}`);
    }
    for (const name of current.keys())
      if (!former.has(name)) add("compatible", "additionalPrinterColumns", `with the column ${name}`);
    if (!isSameOrder(former, current)) add("compatible", "additionalPrinterColumns", "in another order");
  },
  selectableFields: (change, add) =>
    compareSets(change, {
      removed: (field) => add("breaking", fieldName(field), "objects can no longer be selected by it"),
      added: (field) => add("compatible", fieldName(field), "objects can be selected by it"),
    }),
};

/** Checks of crdify, by the path of the part. */
const CHECKS: ReadonlyMap<string, string> = new Map([["spec.scope", "scope"]]);

/** Reports every changed part by its rule, or as unjudged. */
function compareParts(
  [before, after]: readonly [Parts, Parts],
  rules: { readonly [path: string]: PartRule },
  add: AddChange,
): void {
  for (const path of new Set([...before.keys(), ...after.keys()])) {
    const change = { before: before.get(path), after: after.get(path) };
    if (deepEqual(change.before, change.after)) continue;
    const check = CHECKS.get(path) ?? "unhandled";
    let isJudged = false;
    const rule = Object.hasOwn(rules, path) ? rules[path] : undefined;
    rule?.(change, (effect, at, message) => {
      isJudged = true;
      add(effect, at, message, { ...(effect === "breaking" ? { consequence: "behaviorChanges" } : {}), check });
    });
    if (!isJudged)
      add("breaking", path, `${text(change.before)} → ${text(change.after)}; unknown effect: review it`, {
        ...{ consequence: "unjudged", check },
      });
  }
}

interface SetChange {
  removed(name: string): void;
  added(name: string): void;
}

function compareSets(
  { before, after }: { readonly before: JsonValue | undefined; readonly after: JsonValue | undefined },
  { removed, added }: SetChange,
): void {
  const [former, current] = [before, after].map((values) => (Array.isArray(values) ? values : []).map(wordOf)) as [
    string[],
    string[],
  ];
  for (const name of former) if (!current.includes(name)) removed(name);
  for (const name of current) if (!former.includes(name)) added(name);
}

function wordOf(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function fieldName(field: string): string {
  const { jsonPath } = (field.startsWith("{") ? JSON.parse(field) : {}) as { jsonPath?: string };
  return jsonPath?.replace(/^\./, "") ?? field;
}

function namedColumns(columns: JsonValue | undefined): Map<string, string> {
  return new Map(
    (Array.isArray(columns) ? columns : []).map((column) => {
      const { name, ...others } = isJsonObject(column) ? column : {};
      return [String(name), text(others)];
    }),
  );
}

function isSameOrder(former: ReadonlyMap<string, string>, current: ReadonlyMap<string, string>): boolean {
  const common = (one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>) =>
    [...one.keys()].filter((name) => other.has(name)).join("\n");
  return common(former, current) === common(current, former);
}

function byName(crds: readonly Crd[]): ReadonlyMap<string, Crd> {
  return new Map(crds.map((crd) => [nameOf(crd), crd]));
}

function nameOf({ plural, group }: Crd): string {
  return `${plural}.${group}`;
}
