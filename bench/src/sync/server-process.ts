import { startChild } from "../child.js";
import type { ServerCommand, ServerSettings } from "./synthetic-server.js";

/** The synthetic server in a separate process. */
export interface SyntheticServer extends AsyncDisposable {
  readonly url: string;
  readonly ca: string;
  send(command: ServerCommand): void;
}

export async function startSyntheticServer(settings: ServerSettings): Promise<SyntheticServer> {
  const child = startChild(new URL("./synthetic-server.js", import.meta.url), settings);
  const { url, ca } = await child.receive<{ url: string; ca: string }>();
  return { url, ca, send: (command) => child.send(command), [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
}
