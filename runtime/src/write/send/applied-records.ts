import type { JsonValue, KubernetesObject } from "../../base/kubernetes-object.js";
import type { OwnedFields } from "../../decode/decode-resource.js";
import { keyOfListItem } from "../../match/list-item.js";
import { isLeaf, parseOwnedFields, valueKeyOf, type FieldNode } from "../../match/owned-fields.js";
import type { SchemaNode } from "../../match/schema-node.js";

interface AppliedRecord {
  readonly desired: string;
  readonly fieldsV1: string;
  readonly stored: string;
}

/** An object, and what of it was applied. */
export interface AppliedState {
  readonly object: KubernetesObject;
  readonly owned: OwnedFields;
  readonly schema: SchemaNode;
}

/**
 * What the server made of applied objects that the matcher does not recognise in its answer: it normalises some values in ways that no
 * schema tells. Without this such an object would be applied in every reconcile.
 */
export class AppliedRecords {
  readonly #records = new Map<string, AppliedRecord>();

  /** Remembers what the server made of `desired` (JSON text). */
  remember(key: string, desired: string, state: AppliedState): void {
    this.#records.set(key, { desired, fieldsV1: state.owned.fieldsV1, stored: storedText(state) });
  }

  /** Tells whether the same was applied before, and what we own is still as the server stored it then. */
  isUnchanged(key: string, desired: string, state: AppliedState): boolean {
    const record = this.#records.get(key);
    if (record?.desired !== desired || record.fieldsV1 !== state.owned.fieldsV1) return false;
    return record.stored === storedText(state);
  }

  /** Tells whether anything is remembered of an object. */
  has(key: string): boolean {
    return this.#records.has(key);
  }

  /** Forgets an object. */
  delete(key: string): void {
    this.#records.delete(key);
  }
}

function storedText({ object, owned, schema }: AppliedState): string {
  return JSON.stringify(project(object as unknown as JsonValue, parseOwnedFields(owned.fieldsV1), schema));
}

// What of a value is owned, with lists in the order in which they stand.
function project(value: JsonValue | undefined, owned: FieldNode, schema: SchemaNode): unknown {
  if (isLeaf(owned) || typeof value !== "object" || value === null) return value ?? null;
  if (Array.isArray(value)) {
    if (owned.items.size === 0) return value.filter((item) => owned.values.has(valueKeyOf(item)));
    return value.flatMap((item) => {
      const node = owned.items.get(keyOfListItem(item, schema));
      return node === undefined ? [] : [project(item, node, schema.items)];
    });
  }
  return [...owned.fields].map(([name, node]) => [name, project(value[name], node, schema.property(name))]);
}
