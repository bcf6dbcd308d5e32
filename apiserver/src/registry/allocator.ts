import { NODE_PORTS, type Ranges } from "../strategies/core/service-allocation.js";
import { type JsonObject, arrayAt, isObject, objectAt } from "../json.js";
import type { ResourceStore } from "../storage/store.js";

/** Allocates cluster IPs and node ports that no other Service uses. */
export interface Allocator {
  allocateClusterIP(): string;
  allocateNodePort(): number;
  /** The ranges that a Service may request a cluster IP or node port from. */
  readonly ranges: Ranges;
}

// The first address belongs to the Service `kubernetes`; the last is the broadcast address.
const CIDR = "10.0.0.0/16";
const ADDRESSES = 0xffff - 1;
const PORTS = NODE_PORTS.last - NODE_PORTS.first + 1;
// As in Kubernetes, the lower band is reserved for static assignment and is allocated dynamically last.
const KEPT = { addresses: 0x100, ports: 86 };
const HOST = /^10\.0\.\d{1,3}\.\d{1,3}$/;

/** Creates an allocator that counts upwards, skips addresses and ports in use, and wraps around. */
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
      throw new Error(
        "range is full: no cluster IP or node port is left for another Service; delete Services that are not used",
      );
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
