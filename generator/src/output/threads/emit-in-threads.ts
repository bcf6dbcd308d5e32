import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { ResourceModel } from "../../model/project-model.js";
import { packageFile } from "../../package-file.js";
import type { OutputFile } from "../files/output-file.js";
import { emitResource } from "../resource/emit-resource.js";

/** How resources are emitted. */
export interface ThreadOptions {
  /** How many threads share the work, this one included. Default: as many as are faster than fewer */
  readonly threads?: number;
  /** Called with the resources that this thread emits, and their indexes, as it begins with each. */
  onResource?(resource: ResourceModel, index: number): void;
}

// A thread starts and warms up in the time that fifty resources take.
const RESOURCES_PER_THREAD = 100;
const MOST_THREADS = 4;

/** Emits the files of each resource; several threads share many resources. The files do not depend on the number of threads. */
export async function emitInThreads(
  resources: readonly ResourceModel[],
  { threads = threadsFor(resources.length), onResource }: ThreadOptions = {},
): Promise<OutputFile[]> {
  // Large kinds tend to stand together, in the file of their project.
  const shareOf = (thread: number) => resources.filter((_, index) => index % threads === thread);
  const others = Array.from({ length: threads - 1 }, (_, index) => startThread(shareOf(index + 1)));
  try {
    const own = shareOf(0).map((resource, index) => {
      onResource?.(resource, index * threads);
      return emitResource(resource);
    });
    const shares = [own, ...(await Promise.all(others.map(({ files }) => files)))];
    return resources.flatMap((_, index) => shares[index % threads]![Math.floor(index / threads)]!);
  } finally {
    for (const { worker } of others) await worker.terminate();
  }
}

function threadsFor(count: number): number {
  return Math.max(1, Math.min(MOST_THREADS, availableParallelism(), Math.floor(count / RESOURCES_PER_THREAD)));
}

function startThread(resources: readonly ResourceModel[]) {
  // The definition as a whole is as large as all of its versions, and no class needs it.
  const workerData = resources.map(({ crd: _crd, ...resource }) => resource);
  const worker = new Worker(packageFile("dist/output/threads/emit-thread.js"), { workerData });
  const files = new Promise<OutputFile[][]>((resolve, reject) => {
    worker.once("message", resolve).once("error", reject);
    worker.once("exit", () => reject(new Error("a thread that emits code has ended without it")));
  });
  // An error of this thread's own comes first, and nobody waits for the others then.
  files.catch(() => {});
  return { worker, files };
}
