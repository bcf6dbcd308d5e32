import { arrayAt, isObject, objectAt, type JsonObject } from "../json.js";
import type { ResourceStore } from "../storage/resource-store.js";

/** Gives out addresses and ports that no other Service has. */
export interface Allocator {
  allocateClusterIP(): string;
  allocateNodePort(): number;
}

// 10.96.0.0/16, whose first address is the Service "kubernetes" itself, and whose last is no host.
const ADDRESSES = 0xffff - 2;
const FIRST_NODE_PORT = 30_000;
const NODE_PORTS = 2768;

/** Creates an allocator that counts upwards, past what a Service has already, and then starts again. */
export function createAllocator(services: ResourceStore): Allocator {
  const taken = new Map<string | number, number>();
  const count = (object: JsonObject | undefined, by: 1 | -1): void => {
    for (const one of takenBy(object)) taken.set(one, (taken.get(one) ?? 0) + by);
  };
  for (const { object } of services.list("")) count(object, 1);
  services.follow(({ previous, current }) => {
    count(previous?.object, -1);
    count(current?.object, 1);
  });
  const next = <T extends string | number>(candidates: number, at: (index: number) => T): (() => T) => {
    let index = 0;
    return () => {
      for (let tried = 0; tried < candidates; tried++) {
        const candidate = at(index++ % candidates);
        if ((taken.get(candidate) ?? 0) === 0) return candidate;
      }
      throw new Error("no address or port is left for another Service: delete some");
    };
  };
  return {
    allocateClusterIP: next(ADDRESSES, (index) => `10.96.${((index + 2) >> 8) & 0xff}.${(index + 2) & 0xff}`),
    allocateNodePort: next(NODE_PORTS, (index) => FIRST_NODE_PORT + index),
  };
}

function takenBy(service: JsonObject | undefined): (string | number)[] {
  const spec = objectAt(service, "spec");
  const ports = (arrayAt(spec, "ports") ?? []).filter(isObject).map(({ nodePort }) => nodePort);
  const addresses = arrayAt(spec, "clusterIPs") ?? [spec?.["clusterIP"] ?? null];
  const health = spec?.["healthCheckNodePort"];
  return [...addresses, ...ports, health].filter((one) => typeof one === "string" || typeof one === "number");
}
