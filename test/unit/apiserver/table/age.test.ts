import { ageOf, humanDuration } from "#apiserver/table/age.js";
import { assert, suite } from "../../../support/suite.js";

const [SECOND, MINUTE, HOUR, DAY] = [1000, 60_000, 3_600_000, 86_400_000];

suite("age column", (test) => {
  test("formats durations as kubectl does", () => {
    const table: [milliseconds: number, want: string][] = [
      [-2 * SECOND, "<invalid>"],
      [-SECOND, "0s"],
      [0, "0s"],
      [119 * SECOND, "119s"],
      [120 * SECOND, "2m"],
      [3 * MINUTE + SECOND, "3m1s"],
      [10 * MINUTE + 30 * SECOND, "10m"],
      [179 * MINUTE, "179m"],
      [3 * HOUR, "3h"],
      [3 * HOUR + 5 * MINUTE, "3h5m"],
      [8 * HOUR + 5 * MINUTE, "8h"],
      [47 * HOUR, "47h"],
      [2 * DAY, "2d"],
      [2 * DAY + 5 * HOUR, "2d5h"],
      [8 * DAY + 5 * HOUR, "8d"],
      [729 * DAY, "729d"],
      [730 * DAY, "2y"],
      [750 * DAY, "2y20d"],
      [8 * 365 * DAY + DAY, "8y"],
    ];
    for (const [milliseconds, want] of table) assert.is(humanDuration(milliseconds), want);
  });

  test("is <unknown> without a timestamp", () => {
    assert.is(ageOf(undefined, new Date()), "<unknown>");
    assert.is(ageOf(null, new Date()), "<unknown>");
  });
});
