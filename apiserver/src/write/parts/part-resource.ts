import type { ServedType } from "../../builtin/served-type.js";
import { builtinStrategy } from "../../builtin/strategy.js";
import { builtinRules } from "../../registry/builtin-rules.js";
import { ServedResource } from "../../registry/served-resource.js";

/** A kind that is only written below objects of another kind. */
export interface PartKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly schemaName: string;
}

/** Gives what decodes and completes objects of such a kind. It has no path of its own, so its plural is "", and what it stores is the object that it is below. */
export function partResource(part: PartKind, { store }: ServedResource): ServedResource {
  const type: ServedType = {
    ...part,
    ...{ plural: "", singular: "", listKind: "", shortNames: [], categories: [], namespaced: true, verbs: [] },
    subresources: [],
    strategy: builtinStrategy({ group: part.group, plural: "", hasStatus: false }),
  };
  const noAddresses = (): never => {
    throw new Error(`a ${part.kind} has no addresses`);
  };
  return new ServedResource({ type, store, rules: () => builtinRules(type, noAddresses) });
}
