import { NODE_PORTS, type Ranges } from "../strategies/core/service-allocation.js";
import { type JsonObject, arrayAt, isObject, objectAt } from "../json.js";
import type { ResourceStore } from "../storage/store.js";

/** Gives out addresses and ports that no other Service has. */
export interface Allocator {
  allocateClusterIP(): string;
  allocateNodePort(): number;
  /** What a Service may ask for. */
  readonly ranges: Ranges;
}

// The first address is that of the Service "kubernetes", and the last is no host.
const CIDR = "10.0.0.0/16";
const ADDRESSES = 0xffff - 1;
const PORTS = NODE_PORTS.last - NODE_PORTS.first + 1;
// As in Kubernetes, the lowest are given out last: they are for Services that ask for one.
const KEPT = { addresses: 0x100, ports: 86 };
const HOST = /^10\.0\.\d{1,3}\.\d{1,3}$/;

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
    allocateClusterIP: next(ADDRESSES, (index) => addressAt(((index + KEPT.addresses - 1) % ADDRESSES) + 1)),
    allocateNodePort: next(PORTS, (index) => NODE_PORTS.first + ((index + KEPT.ports) % PORTS)),
    ranges: {
      addresses: CIDR,
      holdsAddress: (address) => HOST.test(address) && address !== addressAt(0) && address !== addressAt(0xffff),
      isTaken: (one) => (taken.get(one) ?? 0) > 0,
    },
  };
}

function addressAt(host: number): string {
  return `10.0.${host >> 8}.${host & 0xff}`;
}

function takenBy(service: JsonObject | undefined): (string | number)[] {
  const spec = objectAt(service, "spec");
  const ports = (arrayAt(spec, "ports") ?? []).filter(isObject).map(({ nodePort }) => nodePort);
  const addresses = arrayAt(spec, "clusterIPs") ?? [spec?.["clusterIP"] ?? null];
  const health = spec?.["healthCheckNodePort"];
  return [...addresses, ...ports, health].filter((one) => typeof one === "string" || typeof one === "number");
}
