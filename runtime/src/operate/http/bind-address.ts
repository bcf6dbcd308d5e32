/** Where a server listens. */
export interface BindAddress {
  /** Absent for all interfaces. */
  readonly host?: string;
  readonly port: number;
}

/** What an address has to be, in words. */
export const ADDRESS = 'an address such as ":8081" or "127.0.0.1:8081", or "0" for none';
/** The same for one that only this machine reaches. */
export const LOOPBACK_ADDRESS = 'a loopback address such as "127.0.0.1:8082" or "[::1]:8082", or "0" for none';

/**
 * Reads an address as kubebuilder's flags have it: `:8081` on all interfaces, `127.0.0.1:8081`, `[::1]:8081`; `:0` for any free port. Returns
 * undefined for `0`, which means nowhere. Throws a TypeError that names the setting for anything else.
 */
export function bindAddressOf(setting: string, text: string): BindAddress | undefined {
  if (text === "0" || text === "") return undefined;
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]*)):(\d{1,5})$/.exec(text);
  const port = Number(found?.[3]);
  if (found === null || port > 65_535) throw new TypeError(`${setting} is "${text}", and has to be ${ADDRESS}`);
  const host = found[1] ?? found[2];
  return host === undefined || host === "" ? { port } : { host, port };
}

/** Returns an address in words. */
export function describeAddress({ host, port }: BindAddress): string {
  return `${host?.includes(":") === true ? `[${host}]` : (host ?? "")}:${port}`;
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/** Reads an address as `bindAddressOf` does; throws a TypeError for one that other machines, or other pods, reach. */
export function loopbackAddressOf(setting: string, text: string): BindAddress | undefined {
  const address = bindAddressOf(setting, text);
  if (address === undefined || LOOPBACK.test(address.host ?? "")) return address;
  throw new TypeError(`${setting} is "${text}", and has to be ${LOOPBACK_ADDRESS}`);
}
