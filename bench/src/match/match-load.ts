// A process that matches desired objects against their live state on an API server.
import { startApiServer } from "#apiserver/index.js";
import { type DecodedResource, type ObjectBody, keyOf } from "#runtime/base/kubernetes-object.js";
import { ApiClient } from "#runtime/client/api-client.js";
import { createConnection } from "#runtime/client/connection.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { ApplyMatcher } from "#runtime/apply/apply-matcher.js";
import { type Write, applyOf } from "#runtime/apply/write.js";
import { builtinDefinition } from "#test/support/kinds/kind-definitions.js";
import { quantile } from "../measurement.js";
import { cpuSeconds, settingsOf } from "../sync/sync-probe.js";
import { shapes } from "./match-shapes.js";

/** The settings of the process. */
export interface MatchSettings {
  readonly shape: string;
  /** The durations of the warm-up and of each round. */
  readonly warmUpMs: number;
  readonly roundMs: number;
  readonly rounds: number;
}

/** CPU time per operation in microseconds: medians of the rounds. */
export interface MatchReport {
  readonly leaves: number;
  readonly match: number;
  readonly stringify: number;
}

const FIELD_MANAGER = "bench";
// Each reconcile creates a new desired object, so it shares no strings with the live one. Alternate between several copies.
const COPIES = 8;

const { shape, warmUpMs, roundMs, rounds } = settingsOf<MatchSettings>();
const { apiVersion, kind, ...content } = shapes[shape]!();
const definition = builtinDefinition(apiVersion, kind);
const live = await applied();
const cache = new ResourceView(definition);
cache.attach(new ResourceCache());
const matcher = new ApplyMatcher(FIELD_MANAGER);
const applications = Array.from({ length: COPIES }, (): Write => {
  const desired = JSON.parse(JSON.stringify(content)) as ObjectBody;
  return applyOf({ definition, cache }, desired);
});
let next = 0;
const compare = () => {
  if (!matcher.matches(applications[next++ % COPIES]!, live)) throw new Error(`${shape} does not match`);
};
let length = 0;
const stringify = () => void (length += JSON.stringify(live.object).length);

const report: MatchReport = {
  leaves: leavesOf({ apiVersion, kind, ...content }),
  match: measure(compare),
  stringify: measure(stringify),
};
if (length === 0) throw new Error("nothing was written");
process.send!(report);

async function applied(): Promise<DecodedResource> {
  const server = await startApiServer({ tls: false });
  const client = new ApiClient(createConnection({ url: server.url, token: server.token }));
  const { wasCreated: _wasCreated, ...entry } = await client.apply({ definition }, content as never, {
    fieldManager: FIELD_MANAGER,
  });
  await client.close();
  await server.close();
  if (entry.owned === undefined) throw new Error(`${keyOf(entry.object.metadata)} was not applied`);
  return entry;
}

function measure(run: () => void): number {
  timesWithin(warmUpMs, run);
  const micros = Array.from({ length: rounds }, () => {
    const before = cpuSeconds();
    const times = timesWithin(roundMs, run);
    return ((cpuSeconds() - before) * 1e6) / times;
  });
  return quantile(micros, 0.5);
}

function timesWithin(ms: number, run: () => void): number {
  const end = performance.now() + ms;
  let times = 0;
  // Check the clock rarely compared to the measured code.
  while (performance.now() < end) for (let each = 0; each < 10; each++, times++) run();
  return times;
}

function leavesOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce<number>((sum, member) => sum + leavesOf(member), 0);
}
