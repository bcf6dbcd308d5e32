import { createServingCertificate } from "#apiserver/x509/authority.js";
import { generateKeyPairSync } from "node:crypto";

/** The keys and certificates of a control plane for a test, in PEM. */
export interface Certificates {
  ca: string;
  caKey: string;
  serverCertificate: string;
  serverKey: string;
  serviceAccountKey: string;
}

/** Creates a temporary CA, a serving certificate for the loopback address, and a key that signs service account tokens. */
export function createCertificates(): Certificates {
  const { ca, caKey, certificate, key } = createServingCertificate();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  // kube-apiserver can extract the public key from a SEC 1 key, but not from a PKCS #8 key.
  const serviceAccountKey = privateKey.export({ type: "sec1", format: "pem" }).toString();
  return { ca, caKey, serverCertificate: certificate, serverKey: key, serviceAccountKey };
}
