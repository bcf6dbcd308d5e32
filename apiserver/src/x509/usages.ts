// What a certificate may be used for, in the words of CertificateSigningRequests.
import { bitString, objectIdentifier, sequence } from "./der.js";

// By the number of their bit (RFC 5280, section 4.2.1.3).
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

/** Returns the extensions keyUsage and extKeyUsage that stand for these words; words that are not known are left out. */
export function usageExtensions(usages: readonly string[]): { id: string; value: Buffer; critical: boolean }[] {
  const bits = usages.flatMap((usage) => KEY_USAGES[usage] ?? []);
  const ids = new Set(usages.flatMap((usage) => EXTENDED_USAGES[usage] ?? []));
  return [
    ...(bits.length === 0 ? [] : [{ id: "2.5.29.15", value: bitsOf(bits), critical: true }]),
    ...(ids.size === 0
      ? []
      : [{ id: "2.5.29.37", value: sequence(...[...ids].map(objectIdentifier)), critical: false }]),
  ];
}

// The first bit is the highest one; bits after the last one that is set are unused.
function bitsOf(bits: readonly number[]): Buffer {
  const last = Math.max(...bits);
  const bytes = Buffer.alloc((last >> 3) + 1);
  for (const bit of bits) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) | (0x80 >> (bit & 7));
  return bitString(bytes, 7 - (last & 7));
}
