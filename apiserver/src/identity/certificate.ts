import { createHash, generateKeyPairSync, type KeyObject, sign, X509Certificate } from "node:crypto";
import { bitString, der, explicit, integer, objectIdentifier, octetString, sequence, utcTime } from "./der.js";
import type { Secrets } from "./secrets.js";

/** A serving certificate with its key and the authority that signed it, all in PEM. */
export interface ServingCertificate {
  ca: string;
  certificate: string;
  key: string;
}

const HOUR_MS = 3_600_000;
const LIFETIME_MS = 365 * 24 * HOUR_MS;
const MIN_REMAINING_MS = 30 * 24 * HOUR_MS;
const SECRET = "serving-certificate";
const ECDSA_WITH_SHA256 = sequence(objectIdentifier("1.2.840.10045.4.3.2"));

/** Returns the certificate of a server: the one that it had before, as long as that is valid for a while. */
export function servingCertificateOf(secrets: Secrets): ServingCertificate {
  const kept = secrets.get(SECRET);
  const before = kept === undefined ? undefined : (JSON.parse(kept) as ServingCertificate);
  if (before !== undefined && remainingMsOf(before) > MIN_REMAINING_MS) return before;
  const created = createServingCertificate();
  secrets.set(SECRET, JSON.stringify(created));
  return created;
}

function remainingMsOf({ certificate }: ServingCertificate): number {
  return Date.parse(new X509Certificate(certificate).validTo) - Date.now();
}

/** Creates a certificate for the loopback addresses; its authority's key is thrown away at once. */
export function createServingCertificate(): ServingCertificate {
  const authority = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const server = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuer = {
    name: commonName("gen-operator-apiserver-ca"),
    key: authority.privateKey,
    id: keyIdOf(authority.publicKey),
  };
  const ca = certificateOf(issuer, {
    serial: 1,
    subject: issuer.name,
    publicKey: authority.publicKey,
    extensions: [
      extension("2.5.29.19", sequence(der(0x01, Buffer.from([0xff]))), { critical: true }), // basicConstraints: CA
      extension("2.5.29.15", bitString(Buffer.from([0b1000_0110]), 1), { critical: true }), // keyUsage: sign, certSign, crlSign
    ],
  });
  const certificate = certificateOf(issuer, {
    serial: 2,
    subject: commonName("gen-operator-apiserver"),
    publicKey: server.publicKey,
    extensions: [
      extension(
        "2.5.29.17",
        sequence(...["localhost", "kubernetes.default.svc"].map(dnsName), ...LOOPBACK.map(ipAddress)),
      ),
      extension("2.5.29.15", bitString(Buffer.from([0b1000_0000]), 7), { critical: true }), // keyUsage: digitalSignature
      extension("2.5.29.37", sequence(objectIdentifier("1.3.6.1.5.5.7.3.1"))), // extKeyUsage: serverAuth
    ],
  });
  const key = server.privateKey.export({ type: "pkcs8", format: "pem" });
  return { ca: pemOf(ca), certificate: pemOf(certificate), key: key.toString() };
}

const LOOPBACK = [Buffer.from([127, 0, 0, 1]), Buffer.from([...Array<number>(15).fill(0), 1])];

interface Issuer {
  name: Buffer;
  key: KeyObject;
  id: Buffer;
}

interface CertificateContent {
  serial: number;
  subject: Buffer;
  publicKey: KeyObject;
  extensions: Buffer[];
}

// RFC 5280, section 4.1.
function certificateOf(issuer: Issuer, content: CertificateContent): Buffer {
  const now = Date.now();
  const toBeSigned = sequence(
    explicit(0, integer(2)), // version 3
    integer(content.serial),
    ECDSA_WITH_SHA256,
    issuer.name,
    sequence(utcTime(new Date(now - HOUR_MS)), utcTime(new Date(now + LIFETIME_MS))),
    content.subject,
    content.publicKey.export({ type: "spki", format: "der" }),
    explicit(
      3,
      sequence(
        ...content.extensions,
        extension("2.5.29.14", octetString(keyIdOf(content.publicKey))), // subjectKeyIdentifier
        extension("2.5.29.35", sequence(der(0x80, issuer.id))), // authorityKeyIdentifier
      ),
    ),
  );
  return sequence(toBeSigned, ECDSA_WITH_SHA256, bitString(sign("sha256", toBeSigned, issuer.key)));
}

function extension(id: string, value: Buffer, options: { critical: boolean } = { critical: false }): Buffer {
  const critical = options.critical ? [der(0x01, Buffer.from([0xff]))] : [];
  return sequence(objectIdentifier(id), ...critical, octetString(value));
}

function commonName(name: string): Buffer {
  return sequence(der(0x31, sequence(objectIdentifier("2.5.4.3"), der(0x0c, Buffer.from(name)))));
}

function dnsName(name: string): Buffer {
  return der(0x82, Buffer.from(name));
}

function ipAddress(bytes: Buffer): Buffer {
  return der(0x87, bytes);
}

function keyIdOf(publicKey: KeyObject): Buffer {
  return createHash("sha1")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest();
}

function pemOf(certificate: Buffer): string {
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
