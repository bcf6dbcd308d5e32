import type { Crd, CrdVersion } from "../input/crd/crd.js";
import { collectInto, type AddChange, type Change } from "./change.js";
import { compareSchemas } from "./compare-schemas.js";

/** Compares the CRDs of two states of a project, version by version. */
export function compareCrds(before: readonly Crd[], after: readonly Crd[]): Change[] {
  const changes: Change[] = [];
  const [former, current] = [byName(before), byName(after)];
  for (const [name, crd] of former) {
    const now = current.get(name);
    if (now === undefined)
      collectInto(changes, name)("breaking", "", "removed; deleting the CRD deletes all its objects");
    else compareCrd(crd, now, changes);
  }
  for (const name of current.keys()) if (!former.has(name)) collectInto(changes, name)("compatible", "", "added");
  return changes;
}

function compareCrd(before: Crd, after: Crd, changes: Change[]): void {
  const name = nameOf(before);
  const add = collectInto(changes, name);
  if (before.scope !== after.scope)
    add(
      "breaking",
      "spec.scope",
      `${before.scope} → ${after.scope}; the API server refuses it: delete the CRD and its objects first`,
    );
  if (before.kind !== after.kind) add("breaking", "spec.names.kind", `${before.kind} → ${after.kind}`);
  if (before.singular !== after.singular)
    add("compatible", "spec.names.singular", `${before.singular} → ${after.singular}`);
  const versions = new Map(after.versions.map((version) => [version.name, version]));
  const former = new Set(before.versions.map((version) => version.name));
  for (const version of before.versions) {
    const now = versions.get(version.name);
    const addToVersion = collectInto(changes, `${name} ${version.name}`);
    if (now !== undefined) compareVersion(version, now, addToVersion);
    else if (version.isStorage)
      addToVersion(
        "breaking",
        "",
        "removed; it was the stored version: migrate the objects and status.storedVersions first",
      );
    else addToVersion(version.isServed ? "breaking" : "compatible", "", "removed");
  }
  for (const { name: version, isServed } of after.versions)
    if (!former.has(version))
      collectInto(changes, `${name} ${version}`)("compatible", "", isServed ? "added" : "added, and not served");
}

function compareVersion(before: CrdVersion, after: CrdVersion, add: AddChange): void {
  if (before.isServed !== after.isServed)
    add(after.isServed ? "compatible" : "breaking", "", after.isServed ? "is served now" : "is no longer served");
  if (before.isStorage !== after.isStorage)
    add(
      "compatible",
      "",
      after.isStorage
        ? "is the stored version now; objects are rewritten when somebody writes them"
        : "is no longer the stored version",
    );
  if (before.deprecationWarning !== after.deprecationWarning && after.deprecationWarning !== undefined)
    add("compatible", "", `is deprecated: ${after.deprecationWarning}`);
  if (before.hasStatusSubresource !== after.hasStatusSubresource)
    add(
      "breaking",
      "status",
      after.hasStatusSubresource
        ? "is a subresource now; ordinary writes no longer change it"
        : "is no longer a subresource; writes of the status fail",
    );
  for (const field of before.selectableFields)
    if (!after.selectableFields.includes(field)) add("breaking", field, "objects can no longer be selected by it");
  for (const field of after.selectableFields)
    if (!before.selectableFields.includes(field)) add("compatible", field, "objects can be selected by it");
  compareSchemas(before.schema, after.schema, add);
}

function byName(crds: readonly Crd[]): ReadonlyMap<string, Crd> {
  return new Map(crds.map((crd) => [nameOf(crd), crd]));
}

function nameOf({ plural, group }: Crd): string {
  return `${plural}.${group}`;
}
