// Applies a strategic merge patch with its directives to a live object. The x-kubernetes-patch-* extensions of the schema determine which lists are
// merged and by which key. Messages and quirks are those of Kubernetes 1.36.
import { builtinSchemas, resolveSchema } from "../builtin/schemas.js";
import { goFormat, goTypeOf, quote } from "../errors/go-format.js";
import { badRequest, invalid, plainError } from "../errors/status-error.js";
import {
  type JsonObject,
  type JsonValue,
  clone,
  deepEqual,
  isObject,
  memberOf,
  objectAt,
  setMember,
  stringAt,
} from "../json.js";
import { restoreProblem } from "./restore.js";

const DIRECTIVE = "$patch";
const RETAIN_KEYS = "$retainKeys";
const DELETE_LIST = "$deleteFromPrimitiveList";
const ELEMENT_ORDER = "$setElementOrder";

/** Applies a strategic merge patch to a copy of `object`, an object of the named built-in schema. */
export function applyStrategicMergePatch(schemaName: string, object: JsonObject, patch: JsonValue): JsonObject {
  if (patch === null) return clone(object);
  if (!isObject(patch)) {
    throw badRequest(`json: cannot unmarshal ${goTypeOf(patch)} into Go value of type map[string]interface {}`);
  }
  const merged = mergeMaps(object, patch, memberOf(builtinSchemas(), schemaName) as JsonObject);
  const problem = restoreProblem(schemaName, merged);
  if (problem === undefined) return merged;
  // As in Kubernetes, this error does not name the object.
  throw invalid({ kind: "", group: "", name: "" }, [
    { reason: "FieldValueInvalid", field: "patch", message: `Invalid value: ${quote(goFormat(patch))}: ${problem}` },
  ]);
}

// `schema` is undefined below fields of any type.
function mergeMaps(live: JsonObject, patch: JsonObject, schema: JsonObject | undefined): JsonObject {
  const directive = memberOf(patch, DIRECTIVE);
  if (directive !== undefined) return applyMapDirective(directive, patch);
  const merged = retainedKeys(live, patch);
  const ordered = mergeOrderedLists(merged, patch, schema);
  for (const [key, value] of Object.entries(patch)) {
    if (key === RETAIN_KEYS || key.startsWith(ELEMENT_ORDER) || ordered.has(key)) continue;
    if (key.startsWith(DELETE_LIST)) deleteFromList(merged, keyAfter(DELETE_LIST, key), value);
    else mergeMember({ merged, key, value, schema });
  }
  return merged;
}

function applyMapDirective(directive: JsonValue, patch: JsonObject): JsonObject {
  if (directive === "delete") return {};
  if (directive !== "replace") {
    throw plainError(`unknown patch type: ${goFormat(directive)} in map: ${goFormat(patch)}`);
  }
  const { [DIRECTIVE]: _, ...rest } = patch;
  return clone(rest);
}

// $retainKeys must contain every key that the patch sets. Keys that it does not contain are dropped.
function retainedKeys(live: JsonObject, patch: JsonObject): JsonObject {
  const retained = memberOf(patch, RETAIN_KEYS);
  if (retained === undefined) return clone(live);
  const isPlain = (key: string) => ![RETAIN_KEYS, DELETE_LIST, ELEMENT_ORDER].some((prefix) => key.startsWith(prefix));
  const set = Object.keys(patch).filter((key) => isPlain(key) && patch[key] !== null);
  if (!Array.isArray(retained) || !set.every((key) => retained.includes(key))) {
    throw badRequest("invalid patch format of retainKeys");
  }
  return clone(Object.fromEntries(Object.entries(live).filter(([key]) => retained.includes(key))));
}

// Merges the lists that have a $setElementOrder and returns their keys.
function mergeOrderedLists(merged: JsonObject, patch: JsonObject, schema: JsonObject | undefined): Set<string> {
  const keys = new Set<string>();
  for (const [directive, order] of Object.entries(patch)) {
    if (!directive.startsWith(ELEMENT_ORDER)) continue;
    const key = keyAfter(ELEMENT_ORDER, directive);
    const list = listMergeOf(schema, key);
    const orderList = listOrThrow(order);
    const live = memberOf(merged, key);
    const given = memberOf(patch, key);
    const liveList = live === undefined ? undefined : listOrThrow(live);
    const givenList = given === undefined ? undefined : listOrThrow(given);
    checkOrderList({ given: givenList ?? [], order: orderList, mergeKey: list.mergeKey });
    keys.add(key);
    if (liveList === undefined && givenList === undefined) continue;
    const union =
      givenList === undefined
        ? (liveList ?? [])
        : liveList === undefined
          ? (withoutDirectives(givenList) as JsonValue[])
          : list.merges
            ? mergeList(liveList, givenList, list)
            : givenList;
    setMember(
      merged,
      key,
      orderedBy({ items: union, order: orderList, live: liveList ?? [], mergeKey: list.mergeKey }),
    );
  }
  return keys;
}

function listOrThrow(value: JsonValue): JsonValue[] {
  if (Array.isArray(value)) return value;
  const type = isObject(value) ? "map[string]interface {}" : goTypeOf(value);
  throw plainError(`expected a []interface {}, but received a ${type}`);
}

function keyAfter(prefix: string, directive: string): string {
  const slash = directive.indexOf("/");
  if (slash === prefix.length) return directive.slice(slash + 1);
  const list = prefix === DELETE_LIST ? "primitive list" : "setElementOrder list";
  throw badRequest(`invalid patch format of ${list}`);
}

function deleteFromList(merged: JsonObject, key: string, doomed: JsonValue): void {
  const live = memberOf(merged, key);
  if (doomed === null) delete merged[key];
  if (!Array.isArray(live) || !Array.isArray(doomed)) return;
  merged[key] = live.filter((item) => !doomed.includes(item));
}

interface MemberMerge {
  merged: JsonObject;
  key: string;
  value: JsonValue;
  schema: JsonObject | undefined;
}

function mergeMember({ merged, key, value, schema }: MemberMerge): void {
  const live = memberOf(merged, key);
  if (value === null) delete merged[key];
  else if (isObject(live) && isObject(value)) setMember(merged, key, mergeNode(live, value, childOf(schema, key)));
  else if (Array.isArray(live) && Array.isArray(value)) {
    const list = listMergeOf(schema, key);
    setMember(merged, key, list.merges ? mergeList(live, value, list) : clone(value));
  } else {
    const taken = withoutDirectives(value);
    if (taken === undefined) delete merged[key];
    else setMember(merged, key, taken);
  }
}

function mergeNode(live: JsonObject, patch: JsonObject, node: JsonObject | undefined): JsonObject {
  if (strategiesOf(node).includes("replace")) return clone(patch);
  return mergeMaps(live, patch, node === undefined ? undefined : resolveSchema(node).schema);
}

function listMergeOf(schema: JsonObject | undefined, key: string): ListMerge {
  const node = childOf(schema, key);
  const items = objectAt(node, "items");
  const itemSchema = items === undefined ? undefined : resolveSchema(items).schema;
  const mergeKey = stringAt(node, "x-kubernetes-patch-merge-key");
  return {
    merges: strategiesOf(node).includes("merge"),
    mergeKey,
    mergeItems: (live, patch) => mergeMaps(live, patch, itemSchema),
  };
}

function childOf(schema: JsonObject | undefined, key: string): JsonObject | undefined {
  return objectAt(objectAt(schema, "properties"), key) ?? objectAt(schema, "additionalProperties");
}

function strategiesOf(node: JsonObject | undefined): string[] {
  return (stringAt(node, "x-kubernetes-patch-strategy") ?? "").split(",");
}

// A new value is taken from the patch without nulls and without maps that contain a $patch directive. Other directives count as fields there.
function withoutDirectives(value: JsonValue): JsonValue | undefined {
  if (Array.isArray(value)) return value.map(withoutDirectives).filter((item) => item !== undefined);
  if (!isObject(value)) return value;
  if (memberOf(value, DIRECTIVE) !== undefined) return undefined;
  const kept: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    const inner = member === null ? undefined : withoutDirectives(member);
    if (inner !== undefined) setMember(kept, key, inner);
  }
  return kept;
}

/** The merge strategy of a list. */
interface ListMerge {
  /** False if the list of the patch replaces the live list. */
  merges: boolean;
  /** The field that identifies items; undefined for lists of scalars. */
  mergeKey: string | undefined;
  mergeItems: (live: JsonObject, patch: JsonObject) => JsonObject;
}

/** Merges the items of a patch into a live list: by merge key, or as a set of scalars. */
function mergeList(live: JsonValue[], patch: JsonValue[], merge: ListMerge): JsonValue[] {
  if (live.length === 0 && patch.length === 0) return [];
  const [first = null] = [...live, ...patch];
  const hasObjects = isObject(first);
  if ([...live, ...patch].some((item) => goTypeOf(item) !== goTypeOf(first))) {
    throw plainError(`list element types are not identical: [${goFormat(live)} ${goFormat(patch)}]`);
  }
  const { mergeKey } = merge;
  if (!hasObjects || mergeKey === undefined) {
    return orderedBy({ items: [...new Set([...live, ...patch])], order: patch, live, mergeKey });
  }
  const { kept, items } = applyListDirectives(live as JsonObject[], patch as JsonObject[], mergeKey);
  const merged: JsonObject[] = clone(kept);
  // Ordering requires the merge key of every item.
  if (items.length > 0) for (const item of kept) keyOrThrow(item, mergeKey);
  for (const item of items) {
    const key = keyOrThrow(item, mergeKey);
    const index = merged.findIndex((candidate) => deepEqual(memberOf(candidate, mergeKey), key));
    if (index === -1) merged.push(clone(item));
    else merged[index] = merge.mergeItems(merged[index] as JsonObject, item);
  }
  return orderedBy({ items: merged, order: items, live: kept, mergeKey });
}

function applyListDirectives(live: JsonObject[], patch: JsonObject[], mergeKey: string) {
  let kept = live;
  const items: JsonObject[] = [];
  for (const item of patch) {
    const directive = memberOf(item, "$patch");
    if (directive === undefined) items.push(item);
    else if (directive === "delete") {
      const key = keyOrThrow(item, mergeKey);
      kept = kept.filter((candidate) => !deepEqual(memberOf(candidate, mergeKey), key));
    } else if (directive === "merge") {
      throw plainError("merging lists cannot yet be specified in the patch");
    } else if (directive !== "replace") {
      throw plainError(`unknown patch type: ${goFormat(directive)} in map: ${goFormat(item)}`);
    }
  }
  const isReplaced = patch.some((item) => memberOf(item, "$patch") === "replace");
  return { kept: isReplaced ? [] : kept, items };
}

function keyOrThrow(item: JsonObject, mergeKey: string): JsonValue {
  const key = memberOf(item, mergeKey);
  if (key !== undefined) return key;
  throw plainError(`map: ${goFormat(item)} does not contain declared merge key: ${mergeKey}`);
}

interface OrderedList {
  items: JsonValue[];
  /** The order of the patch: its own list or its $setElementOrder. */
  order: JsonValue[];
  live: JsonValue[];
  mergeKey: string | undefined;
}

/**
 * Orders a merged list: items in the order list follow its order, all others the live order. A live-only item precedes the next ordered item only if
 * that item is live too and came after it; new items therefore precede live-only ones.
 */
function orderedBy({ items, order, live, mergeKey }: OrderedList): JsonValue[] {
  const rankIn = (list: JsonValue[], item: JsonValue) => list.findIndex((other) => isSame(other, item, mergeKey));
  const byRank = (list: JsonValue[]) => (a: JsonValue, b: JsonValue) => rankIn(list, a) - rankIn(list, b);
  const asked = items.filter((item) => rankIn(order, item) >= 0).sort(byRank(order));
  const others = items.filter((item) => rankIn(order, item) < 0).sort(byRank(live));
  const result: JsonValue[] = [];
  while (asked.length > 0 && others.length > 0) {
    const [next, other] = [rankIn(live, asked[0] as JsonValue), rankIn(live, others[0] as JsonValue)];
    result.push((other >= 0 && other < next ? others : asked).shift() as JsonValue);
  }
  return [...result, ...asked, ...others];
}

function isSame(a: JsonValue, b: JsonValue, mergeKey: string | undefined): boolean {
  if (mergeKey === undefined || !isObject(a) || !isObject(b)) return deepEqual(a, b);
  return deepEqual(memberOf(a, mergeKey), memberOf(b, mergeKey));
}

/** Throws unless the items of a patch are contained in its $setElementOrder, in the same order. */
function checkOrderList(lists: { given: JsonValue[]; order: JsonValue[]; mergeKey: string | undefined }): void {
  const { given, order, mergeKey } = lists;
  const items = given.filter((item) => !isObject(item) || memberOf(item, "$patch") === undefined);
  let position = 0;
  for (const item of items) {
    while (position < order.length && !isSame(order[position] as JsonValue, item, mergeKey)) position++;
    if (position++ < order.length) continue;
    throw plainError(
      `The order in patch list:\n${goFormat(given)}\n doesn't match $setElementOrder list:\n${goFormat(order)}\n`,
    );
  }
}
