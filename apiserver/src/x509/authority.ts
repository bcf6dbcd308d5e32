import {
  X509Certificate,
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
} from "node:crypto";
import { isIP } from "node:net";
import {
  TRUE,
  bitString,
  der,
  explicit,
  integer,
  nameAttribute,
  objectIdentifier,
  octetString,
  readElements,
  sequence,
  utcTime,
} from "./der.js";

/** A certificate and its private key, as PEM. */
export interface KeyedCertificate {
  certificate: string;
  key: string;
}

/** Fields of a certificate except the issuer; subject, public key, and extensions are DER. */
interface CertificateContent {
  subject: Buffer;
  publicKey: Buffer;
  usages: readonly string[];
  /** Value of the subjectAltName extension. */
  alternativeNames?: Buffer | undefined;
  notBefore: Date;
  notAfter: Date;
}

/** OID of the subjectAltName extension. */
export const ALTERNATIVE_NAMES = "2.5.29.17";

const ECDSA_WITH_SHA256 = sequence(objectIdentifier("1.2.840.10045.4.3.2"));
/** From 1970 to the end of UTCTime, because tests may set the clock to any date. */
const VALIDITY = { notBefore: new Date(0), notAfter: new Date(Date.UTC(2049, 11, 31)) };

interface Issuer {
  /** DER. */
  name: Buffer;
  /** PEM. */
  key: string;
  id: Buffer;
  expires: Date;
}

/** Creates a self-signed CA. */
export function createAuthority(commonName: string): KeyedCertificate {
  const { publicKey, key } = createKey();
  const name = subjectOf({ commonName });
  const issuer: Issuer = { name, key, id: keyIdOf(publicKey), expires: VALIDITY.notAfter };
  const content = { subject: name, publicKey, usages: [], ...VALIDITY };
  const extensions = [
    extension("2.5.29.19", sequence(TRUE), { critical: true }), // basicConstraints: CA
    extension("2.5.29.15", bitString(Buffer.from([0b1000_0110]), 1), { critical: true }), // keyUsage: sign, certSign, crlSign
  ];
  return { certificate: issue(issuer, content, extensions), key };
}

/** Signs a certificate and returns it as PEM; it expires no later than the CA. */
export function signCertificate(authority: KeyedCertificate, content: CertificateContent): string {
  const issuer = issuerOf(authority);
  const notAfter = content.notAfter < issuer.expires ? content.notAfter : issuer.expires;
  return issue(issuer, { ...content, notAfter }, [
    ...usageExtensions(content.usages).map(({ id, value, critical }) => extension(id, value, { critical })),
    extension("2.5.29.19", sequence(), { critical: true }), // basicConstraints: no CA
    ...(content.alternativeNames === undefined ? [] : [extension(ALTERNATIVE_NAMES, content.alternativeNames)]),
  ]);
}

/** Creates a key pair and a certificate for it. */
export function issueCertificate(
  authority: KeyedCertificate,
  content: Pick<CertificateContent, "subject" | "usages" | "alternativeNames">,
): KeyedCertificate {
  const { publicKey, key } = createKey();
  return { certificate: signCertificate(authority, { ...content, publicKey, ...VALIDITY }), key };
}

/** Encodes a subject; for a client, the common name is the user and the organizations are its groups. */
export function subjectOf({
  commonName,
  organizations = [],
}: {
  commonName: string;
  organizations?: readonly string[];
}): Buffer {
  return sequence(
    ...organizations.map((organization) => nameAttribute("2.5.4.10", organization)),
    nameAttribute("2.5.4.3", commonName),
  );
}

function createKey(): { publicKey: Buffer; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return {
    publicKey: publicKey.export({ type: "spki", format: "der" }),
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function issuerOf({ certificate, key }: KeyedCertificate): Issuer {
  const { raw, validTo } = new X509Certificate(certificate);
  const [toBeSigned] = readElements(readElements(raw)[0]?.content ?? raw);
  // RFC 5280, section 4.1: version, serial number, signature, issuer, validity, subject.
  const subject = readElements(toBeSigned?.content ?? raw)[5]?.raw ?? sequence();
  const publicKey = createPublicKey(key).export({ type: "spki", format: "der" });
  return { name: subject, key, id: keyIdOf(publicKey), expires: new Date(validTo) };
}

// RFC 5280, section 4.1.
function issue(issuer: Issuer, content: CertificateContent, extensions: Buffer[]): string {
  const toBeSigned = sequence(
    explicit(0, integer(2)), // version 3
    integer(serialNumber()),
    ECDSA_WITH_SHA256,
    issuer.name,
    sequence(utcTime(content.notBefore), utcTime(content.notAfter)),
    content.subject,
    content.publicKey,
    explicit(
      3,
      sequence(
        ...extensions,
        extension("2.5.29.14", octetString(keyIdOf(content.publicKey))), // subjectKeyIdentifier
        extension("2.5.29.35", sequence(der(0x80, issuer.id))), // authorityKeyIdentifier
      ),
    ),
  );
  const signature = sign("sha256", toBeSigned, createPrivateKey(issuer.key));
  return pemOf(sequence(toBeSigned, ECDSA_WITH_SHA256, bitString(signature)));
}

function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes;
}

function extension(id: string, value: Buffer, { critical }: { critical: boolean } = { critical: false }): Buffer {
  return sequence(objectIdentifier(id), ...(critical ? [TRUE] : []), octetString(value));
}

function keyIdOf(publicKey: Buffer): Buffer {
  return createHash("sha1").update(publicKey).digest();
}

function pemOf(certificate: Buffer): string {
  const lines = certificate.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

// Extensions for the usages of CertificateSigningRequests.

// By bit number (RFC 5280, section 4.2.1.3).
const KEY_USAGES: Readonly<Record<string, number>> = {
  signing: 0,
  "digital signature": 0,
  "content commitment": 1,
  "key encipherment": 2,
  "data encipherment": 3,
  "key agreement": 4,
  "cert sign": 5,
  "crl sign": 6,
  "encipher only": 7,
  "decipher only": 8,
};

const EXTENDED_USAGES: Readonly<Record<string, string>> = {
  any: "2.5.29.37.0",
  "server auth": "1.3.6.1.5.5.7.3.1",
  "client auth": "1.3.6.1.5.5.7.3.2",
  "code signing": "1.3.6.1.5.5.7.3.3",
  "email protection": "1.3.6.1.5.5.7.3.4",
  "s/mime": "1.3.6.1.5.5.7.3.4",
  "ipsec end system": "1.3.6.1.5.5.7.3.5",
  "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
  "ipsec user": "1.3.6.1.5.5.7.3.7",
  timestamping: "1.3.6.1.5.5.7.3.8",
  "ocsp signing": "1.3.6.1.5.5.7.3.9",
  "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
  "netscape sgc": "2.16.840.1.113730.4.1",
};

/** Returns the keyUsage and extKeyUsage extensions for usages; unknown usages are ignored. */
function usageExtensions(usages: readonly string[]): { id: string; value: Buffer; critical: boolean }[] {
  const bits = usages.flatMap((usage) => KEY_USAGES[usage] ?? []);
  const ids = new Set(usages.flatMap((usage) => EXTENDED_USAGES[usage] ?? []));
  return [
    ...(bits.length === 0 ? [] : [{ id: "2.5.29.15", value: bitsOf(bits), critical: true }]),
    ...(ids.size === 0
      ? []
      : [{ id: "2.5.29.37", value: sequence(...[...ids].map(objectIdentifier)), critical: false }]),
  ];
}

// Bit 0 is the most significant bit; the bits after the last set bit are unused.
function bitsOf(bits: readonly number[]): Buffer {
  const last = Math.max(...bits);
  const bytes = Buffer.alloc((last >> 3) + 1);
  for (const bit of bits) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  return bitString(bytes, 7 - (last & 7));
}

/** A serving certificate with its key and CA, as PEM. */
export interface ServingCertificate extends KeyedCertificate {
  ca: string;
  /** Private key of the CA. */
  caKey: string;
}

const NAMES = ["localhost", "kubernetes.default.svc"];
const LOOPBACK = [Buffer.from([127, 0, 0, 1]), Buffer.from([...Array<number>(15).fill(0), 1])];

/** Creates a certificate for loopback addresses, default names, and the given names and IPs, signed by a new CA. */
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
  // The URL parser canonicalizes an IPv6 address, with hexadecimal groups only.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groupsOf = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const [left, right] = [groupsOf(head), groupsOf(tail ?? "")];
  const groups = [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
  return Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
}
