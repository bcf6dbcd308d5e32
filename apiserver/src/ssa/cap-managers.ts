import { compareText } from "../json.js";
import { identityOf, secondsOf, type ManagedState } from "./managers.js";
import type { OwnedFields } from "./updater.js";

const MAX_UPDATERS = 10;
const BUCKET = "ancient-changes";

/** Merges the oldest updaters of a version into one when there are too many; appliers are never merged. */
export function capUpdaters(state: ManagedState): ManagedState {
  const owners = new Map(state.owners);
  const times = new Map(state.times);
  const updaters = [...owners].filter(([, owned]) => !owned.isApplied).map(([identity]) => identity);
  let count = updaters.length;
  if (count <= MAX_UPDATERS) return state;

  updaters.sort((a, b) => secondsOf(times.get(a)) - secondsOf(times.get(b)) || compareText(a, b));
  const firstOfVersion = new Map<string, string>();
  for (const identity of updaters) {
    if (count <= MAX_UPDATERS) break;
    const { apiVersion } = owners.get(identity) as OwnedFields;
    const first = firstOfVersion.get(apiVersion);
    if (first === undefined) {
      firstOfVersion.set(apiVersion, identity);
      continue;
    }
    const bucket = identityOf({ manager: BUCKET, operation: "Update", apiVersion, subresource: "" });
    mergeInto({ owners, times, bucket }, [first, identity]);
    firstOfVersion.set(apiVersion, bucket);
    count--;
  }
  return { owners, times };
}

interface Merging {
  owners: Map<string, OwnedFields>;
  times: Map<string, string>;
  bucket: string;
}

function mergeInto({ owners, times, bucket }: Merging, identities: readonly string[]): void {
  const time = times.get(identities.at(-1) as string);
  for (const identity of identities) {
    const owned = owners.get(identity);
    if (owned === undefined || identity === bucket) continue;
    const merged = owners.get(bucket);
    owners.delete(identity);
    times.delete(identity);
    owners.set(bucket, merged === undefined ? owned : { ...merged, set: merged.set.union(owned.set) });
  }
  if (time !== undefined) times.set(bucket, time);
}
