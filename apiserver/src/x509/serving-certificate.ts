import { isIP } from "node:net";
import { createAuthority, issueCertificate, subjectOf, type KeyedCertificate } from "./authority.js";
import { der, sequence } from "./der.js";

/** A serving certificate with its key and the authority that signed it, all in PEM. */
export interface ServingCertificate extends KeyedCertificate {
  ca: string;
  /** With which the authority signs. */
  caKey: string;
}

const NAMES = ["localhost", "kubernetes.default.svc"];
const LOOPBACK = [Buffer.from([127, 0, 0, 1]), Buffer.from([...Array<number>(15).fill(0), 1])];

/** Creates a certificate for the loopback addresses and these names and addresses, by an authority of its own. */
export function createServingCertificate(names: readonly string[] = []): ServingCertificate {
  const authority = createAuthority("gen-operator-apiserver-ca");
  const issued = issueCertificate(authority, {
    subject: subjectOf({ commonName: "gen-operator-apiserver" }),
    usages: ["digital signature", "server auth"],
    alternativeNames: sequence(
      ...[...NAMES, ...names.filter((name) => isIP(name) === 0)].map((name) => der(0x82, Buffer.from(name))),
      ...[...LOOPBACK, ...names.filter((name) => isIP(name) !== 0).map(addressBytes)].map((bytes) => der(0x87, bytes)),
    ),
  });
  return { ...issued, ca: authority.certificate, caKey: authority.key };
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  // The URL parser spells an IPv6 address in its shortest form, with groups of hexadecimal digits alone.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groupsOf = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const [left, right] = [groupsOf(head), groupsOf(tail ?? "")];
  const groups = [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}
