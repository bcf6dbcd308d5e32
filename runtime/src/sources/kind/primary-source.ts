import type { IndexFunction } from "../../cache/object-index.js";
import type { InformerRequest } from "../../watch/shared-informers.js";
import { KindSource } from "./kind-source.js";

interface PrimarySourceOptions extends Pick<
  InformerRequest,
  "definition" | "labelSelector" | "fieldSelector" | "shardSelector"
> {
  readonly indexes?: { readonly [name: string]: IndexFunction } | undefined;
}

/** Creates the event source of the primaries of a controller; no other one of the controller may have its name, "primary". */
export function createPrimarySource({ indexes, ...request }: PrimarySourceOptions): KindSource {
  return new KindSource({ name: "primary", request, namespaces: "sameAsController", indexes, isOfPrimaries: true });
}
