// One pool of control planes for all processes of a run. The runner lends them through a socket, and a test process borrows from it. A connection is one
// loan: a line with the options, and a line with the control plane or the error. Its end gives the control plane back, also when the process dies.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { ControlPlanePool, type BorrowOptions } from "./control-plane-pool.js";
import type { ControlPlane } from "./control-plane.js";

/** The environment variable with the path of the socket. */
export const LENDER = "TEST_CONTROL_PLANE_SOCKET";

/** What the lender answers. */
export type Loan = { readonly plane: Omit<ControlPlane, "close" | typeof Symbol.asyncDispose> } | { error: string };

/** Lends control planes until it is disposed of. */
export interface Lender extends AsyncDisposable {
  /** The path of the socket. */
  readonly path: string;
}

/** Starts to lend control planes. The first one is started when a test asks for it. */
export async function lendControlPlanes(): Promise<Lender> {
  const pool = new ControlPlanePool();
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-planes-"));
  const path = join(folder, "socket");
  const loans = new Set<Promise<void>>();
  const server = createServer((socket) => {
    const loan = lend(socket, pool).finally(() => loans.delete(loan));
    loans.add(loan);
  });
  server.listen(path);
  await once(server, "listening");
  return {
    path,
    async [Symbol.asyncDispose]() {
      server.close();
      await Promise.all(loans);
      await pool[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function lend(socket: Socket, pool: ControlPlanePool): Promise<void> {
  const closed = new Promise<void>((done) => socket.once("close", () => done()));
  // The end of a process can reset the connection.
  socket.on("error", () => {});
  const [line] = (await Promise.race([once(createInterface(socket), "line"), closed])) ?? [];
  if (line === undefined) return;
  const answer = (loan: Loan) => void (socket.destroyed || socket.write(`${JSON.stringify(loan)}\n`));
  try {
    await using plane = await pool.borrow(JSON.parse(String(line)) as BorrowOptions);
    answer({ plane });
    await closed;
  } catch (error) {
    answer({ error: String(error) });
    socket.end();
  }
}
