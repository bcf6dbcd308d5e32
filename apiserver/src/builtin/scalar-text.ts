import { canonicalQuantity } from "@gen-operator/schema";

const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

const TIME_TEXT = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const TIME_LAYOUT = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME_LAYOUT = "2006-01-02T15:04:05.000000Z07:00";

const MAX_REMEMBERED = 1024;
const MAX_REMEMBERED_LENGTH = 64;

/** A type that is written as text, or as a number, in a form of its own. */
export interface TextType {
  /** Gives the canonical form, or what Kubernetes says about a text that has none. */
  canonical: (text: string) => { text: string } | { problem: string };
  takesNumbers: boolean;
}

const TEXT_TYPES = new Map<string, TextType>([
  [QUANTITY, { canonical: remembered(canonicalQuantity), takesNumbers: true }],
  [TIME, { canonical: remembered(canonicalOfTime), takesNumbers: false }],
  [MICRO_TIME, { canonical: remembered(canonicalOfMicroTime), takesNumbers: false }],
]);

/** Gives how values of a named schema are written; undefined for ordinary objects and scalars. */
export function textTypeOf(schemaName: string | undefined): TextType | undefined {
  return schemaName === undefined ? undefined : TEXT_TYPES.get(schemaName);
}

// Objects keep their texts from write to write, so the same come back again and again.
function remembered(canonicalOf: TextType["canonical"]): TextType["canonical"] {
  const known = new Map<string, ReturnType<TextType["canonical"]>>();
  return (text) => {
    let canonical = known.get(text);
    if (canonical !== undefined) return canonical;
    canonical = canonicalOf(text);
    if (known.size >= MAX_REMEMBERED) known.clear();
    if (text.length <= MAX_REMEMBERED_LENGTH) known.set(text, canonical);
    return canonical;
  };
}

/** True for the schema of ports and percentages, which are integers or text. */
export function isIntOrString(schemaName: string | undefined): boolean {
  return schemaName === INT_OR_STRING;
}

/** True for the schema of quantities. */
export function isQuantity(schemaName: string | undefined): boolean {
  return schemaName === QUANTITY;
}

function canonicalOfTime(text: string) {
  const time = parseTime(text);
  if (time === undefined) return { problem: timeProblem(text, TIME_LAYOUT) };
  return { text: `${time.seconds}Z` };
}

function canonicalOfMicroTime(text: string) {
  const time = parseTime(text);
  if (time === undefined) return { problem: timeProblem(text, MICRO_TIME_LAYOUT) };
  if (time.fraction.length !== 7) {
    const rest = text.slice(19);
    return { problem: `parsing time "${text}" as "${MICRO_TIME_LAYOUT}": cannot parse "${rest}" as ".000000"` };
  }
  return { text: `${time.seconds}${time.fraction}Z` };
}

function parseTime(text: string): { seconds: string; fraction: string } | undefined {
  const match = TIME_TEXT.exec(text);
  const milliseconds = Date.parse(text.replace(/\.\d+/, ""));
  if (match === null || Number.isNaN(milliseconds)) return undefined;
  return { seconds: new Date(milliseconds).toISOString().slice(0, 19), fraction: match[7] ?? "" };
}

function timeProblem(text: string, layout: string): string {
  return `parsing time "${text}" as "${layout}": cannot parse "${text}" as "2006"`;
}
