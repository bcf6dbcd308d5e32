/** Gives out addresses and ports that no other Service has. */
export interface Allocator {
  allocateClusterIP(): string;
  allocateNodePort(): number;
}

const FIRST_NODE_PORT = 30_000;
const NODE_PORTS = 2768;

/** Creates an allocator that counts upwards; 10.96.0.0/16 is enough for 65,000 Services in the life of one server. */
export function createAllocator(): Allocator {
  // 10.96.0.1 is the Service "kubernetes" itself.
  let addresses = 1;
  let ports = 0;
  return {
    allocateClusterIP() {
      addresses++;
      return `10.96.${(addresses >> 8) & 0xff}.${addresses & 0xff}`;
    },
    allocateNodePort: () => FIRST_NODE_PORT + (ports++ % NODE_PORTS),
  };
}
