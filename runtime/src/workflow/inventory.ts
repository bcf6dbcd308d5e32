// What a primary notes about its dependents, so that a later version of the operator finds what it no longer has: not the objects, which
// say themselves whose they are, but where to look for them. It is written before the first of them is made, and is as long as the workflow.
import type { ResourceDefinition } from "../base/resource-definition.js";
import { isKubernetes, type WorkflowDefinition } from "./definition/workflow-definition.js";

/** Where the objects of a dependent are to be looked for. */
export interface InventoryEntry {
  /** The name of the dependent. */
  readonly name: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly scope?: "Cluster";
  readonly namespace?: string;
  readonly cluster?: string;
  /** Whether no owner reference ties them, so that nobody deletes them but the operator. */
  readonly ordered?: true;
  /** Whether they are written by POST and PUT. */
  readonly put?: true;
}

/** Returns the entries of the dependents that a workflow has, in its order. */
export function inventoryOf({ dependents }: WorkflowDefinition): readonly InventoryEntry[] {
  const written = dependents.filter(isKubernetes).filter(({ mode }) => mode !== "readOnly");
  return written.map(({ name, resource, namespace, cluster, isGarbageCollected, usesServerSideApply }) => ({
    ...placeOf(name, resource, { namespace, cluster }),
    ...(isGarbageCollected ? {} : { ordered: true }),
    ...(usesServerSideApply === false ? { put: true } : {}),
  }));
}

/** Returns the entries of the dependents of which a workflow says that it no longer has them. */
export function removedOf({ removed = {} }: WorkflowDefinition): readonly InventoryEntry[] {
  return Object.entries(removed).map(([name, { resource, ...place }]) => ({
    ...placeOf(name, resource, place),
    ordered: true,
    put: true,
  }));
}

/** Returns the text in which a primary notes entries; undefined for none. */
export function formatInventory(entries: readonly InventoryEntry[]): string | undefined {
  return entries.length === 0 ? undefined : JSON.stringify(entries);
}

/** Reads what a primary notes; what is no inventory has no entries. */
export function parseInventory(text: string | undefined): readonly InventoryEntry[] {
  if (text === undefined) return [];
  try {
    const entries: unknown = JSON.parse(text);
    return Array.isArray(entries) ? entries.filter(isEntry) : [];
  } catch {
    // Somebody else wrote it; it is replaced by what the workflow has.
    return [];
  }
}

/** Returns those of `entries` that stand for other objects than any of `others`. */
export function withoutEntries(
  entries: readonly InventoryEntry[],
  others: readonly InventoryEntry[],
): readonly InventoryEntry[] {
  const known = new Set(others.map(entryKeyOf));
  return entries.filter((entry) => !known.has(entryKeyOf(entry)));
}

/** Returns what tells an entry from the others: its name and where its objects are, in whichever version. */
export function entryKeyOf({ name, apiVersion, kind, namespace, cluster }: InventoryEntry): string {
  return JSON.stringify([name, groupOf(apiVersion), kind, namespace ?? null, cluster ?? null]);
}

/** Returns what is known of the kind of an entry, which is enough to watch its metadata and to delete it. */
export function definitionOf({ apiVersion, kind, plural, scope }: InventoryEntry): ResourceDefinition {
  const group = groupOf(apiVersion);
  const version = apiVersion.slice(apiVersion.indexOf("/") + 1);
  const facts = { hasStatusSubresource: false, isCustom: group.includes("."), schema: {} };
  return { group, version, kind, plural, scope: scope ?? "Namespaced", apiVersion, ...facts };
}

/** Tells whether an entry stands for objects of a kind, in whichever version. */
export function isOfKind({ apiVersion, kind }: InventoryEntry, resource: ResourceDefinition): boolean {
  return kind === resource.kind && groupOf(apiVersion) === resource.group;
}

function placeOf(
  name: string,
  { apiVersion, kind, plural, scope }: ResourceDefinition,
  { namespace, cluster }: { readonly namespace?: string | undefined; readonly cluster?: string | undefined },
): InventoryEntry {
  return {
    name,
    apiVersion,
    kind,
    plural,
    ...(scope === "Cluster" ? { scope } : {}),
    ...(namespace === undefined ? {} : { namespace }),
    ...(cluster === undefined ? {} : { cluster }),
  };
}

function isEntry(value: unknown): value is InventoryEntry {
  if (typeof value !== "object" || value === null) return false;
  const { name, apiVersion, kind, plural, namespace, cluster } = value as Record<string, unknown>;
  const isText = (text: unknown) => typeof text === "string" && text !== "";
  const isOptional = (text: unknown) => text === undefined || isText(text);
  return [name, apiVersion, kind, plural].every(isText) && isOptional(namespace) && isOptional(cluster);
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf("/");
  return slash === -1 ? "" : apiVersion.slice(0, slash);
}
