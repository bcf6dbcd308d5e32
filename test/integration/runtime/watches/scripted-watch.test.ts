// What a list-watch makes of servers of which the test writes every answer.
import { waitFor } from "#apiserver/wait-for.js";
import { assert, suite } from "../../../support/suite.js";
import {
  follow,
  untilText,
  startScripted,
  configMap,
  line,
  endOfInitialEvents,
  isWatch,
  isWatchList,
  list,
} from "./followed-cache.js";

suite("list-watch on a scripted server", (test) => {
  for (const status of [400, 422])
    test(`lists in pages if a WatchList is answered with ${status}`, async () => {
      await using server = await startScripted((request, response) => {
        if (isWatchList(request)) response.writeHead(status).end("{}");
        else if (isWatch(request)) response.writeHead(200).write(line("ADDED", configMap("c", "12", "watched")));
        else if (request.url!.includes("continue=next"))
          list(response, [configMap("b", "9", "b")], { resourceVersion: "10" });
        else list(response, [configMap("a", "8", "a")], { resourceVersion: "10", continue: "next" });
      });
      await using followed = follow(server);
      await untilText(followed, "c", "watched");
      assert.is(followed.textOf("a"), "a");
      assert.is(followed.textOf("b"), "b");
      assert.equal(followed.failures, []);
      const resumed = server.requests.find((url) => url.includes("watch=true") && url.includes("resourceVersion=10"));
      assert.ok(resumed);
    });

  test("relists without pages if the continue token expires, and drops the partial list", async () => {
    await using server = await startScripted((request, response) => {
      if (isWatchList(request)) response.writeHead(400).end("{}");
      else if (isWatch(request)) response.writeHead(200).flushHeaders();
      else if (request.url!.includes("continue=next")) response.writeHead(410).end("{}");
      else if (request.url!.includes("limit="))
        list(response, [configMap("a", "8", "a")], { resourceVersion: "10", continue: "next" });
      else list(response, [configMap("b", "11", "b")], { resourceVersion: "12" });
    });
    await using followed = follow(server);
    await untilText(followed, "b", "b");
    await waitFor("the list is complete", () => followed.replacements() === 1);
    assert.equal([followed.textOf("a"), followed.versions[0], followed.failures], [undefined, "12", []]);
  });

  for (const items of [[], [configMap("a", "8", "a")]])
    test(`lists if the bookmark is missing after ${items.length} initial events`, async () => {
      await using server = await startScripted((request, response) => {
        if (isWatch(request)) {
          response.writeHead(200).flushHeaders();
          if (isWatchList(request)) for (const item of items) response.write(line("ADDED", item));
        } else list(response, items, { resourceVersion: "10" });
      });
      await using followed = follow(server, { initialTimeoutMs: 150 });
      await waitFor("the state is known", () => followed.replacements() === 1);
      assert.is([...followed.cache.keys()].length, items.length);
    });

  test("reports a server that accepts connections but never responds", async () => {
    await using server = await startScripted(() => {});
    await using followed = follow(server, { initialTimeoutMs: 100 });
    await waitFor("the failure is reported", () => followed.failures.length > 0);
    assert.match(followed.failures[0]!, server.url);
    assert.match(followed.failures[0]!, "nothing arrived");
  });

  test("replaces a stale watch, and keeps one that receives bookmarks", async () => {
    let isReplaced = false;
    await using server = await startScripted((request, response) => {
      const { url = "" } = request;
      response.writeHead(200).write(isWatchList(request) ? endOfInitialEvents("5") : "");
      response.flushHeaders();
      if (url.endsWith("timeoutSeconds=1")) return response.end(line("ADDED", configMap("a", "6", "missed")));
      if (isWatchList(request)) return;
      isReplaced = true;
      response.write(line("ADDED", configMap("a", "6", "missed")));
      let version = 6;
      const timer = setInterval(
        () => response.write(line("BOOKMARK", { metadata: { resourceVersion: `${++version}` } })),
        50,
      );
      response.on("close", () => clearInterval(timer));
    });
    await using followed = follow(server, { quietMs: 200 });
    await waitFor("the silent one is replaced", () => isReplaced);
    await untilText(followed, "a", "missed");
    await waitFor("bookmarks come", () => followed.versions.length > 10);
    assert.is(server.requests.length, 3);
    assert.match(server.requests[2]!, "resourceVersion=5");
    assert.match(
      followed.failures.join(),
      /watch is stale: .+ has changes after resourceVersion 5 that it did not deliver/,
    );
  });

  test("tries a WatchList again at the next relist after it was incomplete", async () => {
    let watchLists = 0;
    await using server = await startScripted((request, response) => {
      if (isWatchList(request) && ++watchLists === 1) response.writeHead(200).end();
      else if (isWatchList(request)) response.writeHead(200).write(endOfInitialEvents("20"));
      else if (isWatch(request)) response.writeHead(410).end("{}");
      else list(response, [], { resourceVersion: "10" });
    });
    await using followed = follow(server);
    await waitFor("the state is known twice", () => followed.replacements() >= 2);
    assert.equal(followed.versions.slice(0, 2), ["10", "20"]);
    assert.ok(watchLists >= 2);
  });

  test("resumes from the last bookmark", async () => {
    await using server = await startScripted((request, response) => {
      response.writeHead(200);
      if (isWatchList(request)) response.write(endOfInitialEvents("5"));
      response.write(line("BOOKMARK", { metadata: { resourceVersion: "77" } }), () => response.destroy());
    });
    await using followed = follow(server);
    await waitFor("the watch is taken up again", () => server.requests.length >= 2);
    assert.match(server.requests[1]!, "resourceVersion=77");
    assert.is(followed.replacements(), 1);
  });

  test("reports an ERROR event other than 410, and restarts the watch", async () => {
    let watches = 0;
    await using server = await startScripted((request, response) => {
      response.writeHead(200);
      if (isWatchList(request)) response.write(endOfInitialEvents("5"));
      if (++watches === 1)
        response.end(line("ERROR", { kind: "Status", code: 500, reason: "InternalError", message: "etcd is gone" }));
      else response.write(line("ADDED", configMap("a", "6", "after")));
    });
    await using followed = follow(server);
    await untilText(followed, "a", "after");
    assert.is(followed.replacements(), 1);
    assert.match(followed.failures[0]!, "etcd is gone");
  });

  test("reports a line that is not an event, and restarts the watch", async () => {
    let watches = 0;
    await using server = await startScripted((request, response) => {
      response.writeHead(200);
      if (isWatchList(request)) response.write(endOfInitialEvents("5"));
      if (++watches === 1) response.write("<html>gateway</html>\n");
      else response.write(line("ADDED", configMap("a", "6", "after")));
    });
    await using followed = follow(server);
    await untilText(followed, "a", "after");
    assert.ok(followed.failures.length > 0);
  });
});
