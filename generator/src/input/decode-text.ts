import { isUtf8 } from "node:buffer";
import { positionAfter, type Diagnostic } from "../diagnostic.js";

/** Decodes the bytes of a file, which have to be UTF-8, or says where they are not. */
export function decodeText(file: string, bytes: Uint8Array): string | Diagnostic {
  // A replaced character would end up in generated code.
  if (isUtf8(bytes)) return withoutMark(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString());
  const valid = validPartOf(bytes);
  const byte = bytes[Buffer.byteLength(valid)] ?? 0;
  return {
    severity: "error",
    rule: "unreadable-file",
    message: `the file is not UTF-8 text: the byte 0x${byte.toString(16).padStart(2, "0")} starts no valid character`,
    position: positionAfter(file, valid),
    hint: hasMarkOfUtf16(bytes) ? "it is UTF-16; save it as UTF-8" : "save it as UTF-8",
  };
}

/** Returns a text without the mark of its byte order. */
function withoutMark(text: string): string {
  return text.startsWith("\ufeff") ? text.slice(1) : text;
}

/** Returns the characters before the first one that is none. */
function validPartOf(bytes: Uint8Array): string {
  const decodePart = (length: number) => decode(bytes.subarray(0, length));
  let [valid, invalid] = [0, bytes.length + 1];
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >>> 1;
    if (decodePart(middle) === undefined) invalid = middle;
    else valid = middle;
  }
  return decodePart(valid) ?? "";
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true });
  } catch {
    return undefined;
  }
}

function hasMarkOfUtf16([first, second]: Uint8Array): boolean {
  return (first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff);
}
