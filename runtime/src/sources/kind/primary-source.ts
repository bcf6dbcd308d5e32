import { KindSource, type KindSourceOptions } from "./kind-source.js";

type PrimarySourceOptions = KindSourceOptions["request"] & Pick<KindSourceOptions, "indexes">;

/** Creates the event source of the primaries of a controller; no other one of the controller may have its name, "primary". */
export function createPrimarySource({ indexes, ...request }: PrimarySourceOptions): KindSource {
  return new KindSource({ name: "primary", request, namespaces: "sameAsController", indexes, isOfPrimaries: true });
}
