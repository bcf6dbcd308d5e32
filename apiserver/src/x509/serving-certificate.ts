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

/** Creates a certificate for the loopback addresses, by an authority of its own. */
export function createServingCertificate(): ServingCertificate {
  const authority = createAuthority("gen-operator-apiserver-ca");
  const issued = issueCertificate(authority, {
    subject: subjectOf({ commonName: "gen-operator-apiserver" }),
    usages: ["digital signature", "server auth"],
    alternativeNames: sequence(
      ...NAMES.map((name) => der(0x82, Buffer.from(name))),
      ...LOOPBACK.map((address) => der(0x87, address)),
    ),
  });
  return { ...issued, ca: authority.certificate, caKey: authority.key };
}
