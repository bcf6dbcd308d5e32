import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import { shared } from "../suite.js";
import { ControlPlanePool, type BorrowOptions } from "./control-plane-pool.js";
import type { ControlPlane } from "./control-plane.js";
import { LENDER, type Loan } from "./lend-control-planes.js";

/** For a test file that runs without the runner. */
const ownPool = shared(() => Promise.resolve(new ControlPlanePool()));

/**
 * Returns a control plane of the run in the state in which `startControlPlane` returns it; `close` gives it back.
 *
 * For a test that asks for no other options and does not look at the programs. Only resource versions show that it was used before.
 */
export async function borrowControlPlane(options: BorrowOptions = {}): Promise<ControlPlane> {
  const path = process.env[LENDER];
  if (path === undefined) return (await ownPool()).borrow(options);
  const socket = connect(path);
  const closed = once(socket, "close");
  socket.write(`${JSON.stringify(options)}\n`);
  const [line] = (await once(createInterface(socket), "line")) as [string];
  const loan = JSON.parse(line) as Loan;
  if ("error" in loan) throw new Error(loan.error);
  const close = async () => {
    socket.end();
    await closed;
  };
  return { ...loan.plane, close, [Symbol.asyncDispose]: close };
}
