import { objectAt, type JsonObject } from "../json.js";
import { keyOf, keyPrefixOf } from "../object/object-key.js";
import { metadataOf } from "../object/object-meta.js";
import type { ServedResource } from "../registry/served-resource.js";
import { parseFieldSelector, parseLabelSelector } from "./selectors.js";

/** The objects that a list, a watch or a deletecollection is about. */
export interface Selection {
  /** The prefix that all their keys have. */
  prefix: string;
  /** The key of the only object that can be selected, if there is one. */
  key?: string;
  /** True when labels or fields narrow the selection. */
  isFiltered: boolean;
  /** True for selected objects among those below the prefix. */
  matches(object: JsonObject): boolean;
}

/** Returns the selection that a namespace and two selectors describe. */
export function parseSelection(
  resource: ServedResource,
  options: { namespace: string | undefined; labelSelector: string; fieldSelector: string },
): Selection {
  const { namespace, labelSelector, fieldSelector } = options;
  const prefix = keyPrefixOf(namespace);
  if (labelSelector === "" && fieldSelector === "") return { prefix, isFiltered: false, matches: () => true };
  const matchesLabels = parseLabelSelector(labelSelector);
  const fields = parseFieldSelector(fieldSelector, resource.type);
  const isSingle = fields.name !== undefined && (namespace !== undefined || !resource.type.namespaced);
  return {
    prefix,
    ...(isSingle ? { key: keyOf({ namespace, name: fields.name as string }) } : {}),
    isFiltered: true,
    matches: (object) => matchesLabels(labelsOf(object)) && fields.matches(object),
  };
}

function labelsOf(object: JsonObject): Record<string, string> {
  return (objectAt(metadataOf(object), "labels") ?? {}) as Record<string, string>;
}
