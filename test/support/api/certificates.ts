import { createServingCertificate } from "#apiserver/x509/authority.js";
import { generateKeyPairSync } from "node:crypto";

/** Keys and certificates of a control plane that lives for a test; everything is PEM. */
export interface Certificates {
  ca: string;
  caKey: string;
  serverCertificate: string;
  serverKey: string;
  serviceAccountKey: string;
}

/** Creates a throw-away authority, a certificate for a server on loopback, and a key that signs service-account tokens. */
export function createCertificates(): Certificates {
  const { ca, caKey, certificate, key } = createServingCertificate();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  // kube-apiserver reads the public half out of a SEC 1 key, but not out of a PKCS #8 key.
  const serviceAccountKey = privateKey.export({ type: "sec1", format: "pem" }).toString();
  return { ca, caKey, serverCertificate: certificate, serverKey: key, serviceAccountKey };
}
