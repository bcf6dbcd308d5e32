// What the functions of CEL and of its extensions take and return, in the order in which kube-apiserver tries them. A capital letter is any type,
// the same one wherever it stands; `$compared` and `$summed` are each type that can be compared, and added up.

const ARITHMETIC = "(double, double) -> double | (int, int) -> int | (uint, uint) -> uint";
const ORDER = [
  "(bool, bool) -> bool | (int, int) -> bool | (int, double) -> bool | (int, uint) -> bool | (uint, uint) -> bool",
  "(uint, double) -> bool | (uint, int) -> bool | (double, double) -> bool | (double, int) -> bool",
  "(double, uint) -> bool | (string, string) -> bool | (bytes, bytes) -> bool | (timestamp, timestamp) -> bool",
  "(duration, duration) -> bool",
].join(" | ");
const PART_OF_TIME = "timestamp.() -> int | timestamp.(string) -> int";

const OPERATORS = `
!_                    (bool) -> bool
-_                    (double) -> double | (int) -> int
@in                   (A, list(A)) -> bool | (A, map(A, B)) -> bool
_==_,_!=_             (A, A) -> bool
_<_,_<=_,_>_,_>=_     ${ORDER}
_*_,_/_               ${ARITHMETIC}
_%_                   (int, int) -> int | (uint, uint) -> uint
_-_                   (double, double) -> double | (duration, duration) -> duration | (int, int) -> int | (timestamp, duration) -> timestamp | (timestamp, timestamp) -> duration | (uint, uint) -> uint
_+_                   (bytes, bytes) -> bytes | (double, double) -> double | (duration, duration) -> duration | (duration, timestamp) -> timestamp | (timestamp, duration) -> timestamp | (int, int) -> int | (list(A), list(A)) -> list(A) | (string, string) -> string | (uint, uint) -> uint
_?_:_                 (bool, A, A) -> A
_[_]                  (list(A), int) -> A | (map(A, B), A) -> B | (optional(list(V)), int) -> optional(V) | (optional(map(K, V)), K) -> optional(V)
_[?_]                 (list(V), int) -> optional(V) | (optional(list(V)), int) -> optional(V) | (map(K, V), K) -> optional(V) | (optional(map(K, V)), K) -> optional(V)
@not_strictly_false   (bool) -> bool
`;

const CONVERSIONS = `
bool                  (bool) -> bool | (string) -> bool
bytes                 (bytes) -> bytes | (string) -> bytes
double                (double) -> double | (int) -> double | (string) -> double | (uint) -> double
duration              (duration) -> duration | (int) -> duration | (string) -> duration
dyn                   (A) -> dyn
int                   (int) -> int | (double) -> int | (duration) -> int | (string) -> int | (timestamp) -> int | (uint) -> int
string                (string) -> string | (bool) -> string | (bytes) -> string | (double) -> string | (duration) -> string | (int) -> string | (timestamp) -> string | (uint) -> string | (net.IP) -> string | (net.CIDR) -> string
timestamp             (timestamp) -> timestamp | (int) -> timestamp | (string) -> timestamp
type                  (A) -> type(A)
uint                  (uint) -> uint | (double) -> uint | (int) -> uint | (string) -> uint
`;

const TIMES = `
getDate,getDayOfMonth,getDayOfWeek,getDayOfYear,getFullYear,getMonth  ${PART_OF_TIME}
getHours,getMilliseconds,getMinutes,getSeconds                        ${PART_OF_TIME} | duration.() -> int
`;

const STRINGS = `
charAt                string.(int) -> string
contains              string.(string) -> bool
endsWith,startsWith   string.(string) -> bool
format                string.(list(dyn)) -> string
join                  list(string).() -> string | list(string).(string) -> string
lowerAscii            string.() -> string
matches               (string, string) -> bool | string.(string) -> bool
replace               string.(string, string) -> string | string.(string, string, int) -> string
size                  (bytes) -> int | bytes.() -> int | (list(A)) -> int | list(A).() -> int | (map(A, B)) -> int | map(A, B).() -> int | (string) -> int | string.() -> int
split                 string.(string) -> list(string) | string.(string, int) -> list(string)
strings.quote         (string) -> string
substring             string.(int) -> string | string.(int, int) -> string
trim,upperAscii       string.() -> string
`;

const LISTS = `
distinct,reverse      list(T).() -> list(T)
first,last            list(V).() -> optional(V)
flatten               list(list(T)).() -> list(T) | list(dyn).(int) -> list(dyn)
lists.range           (int) -> list(int)
slice                 list(T).(int, int) -> list(T)
sort                  list($compared).() -> list($compared)
@sortByAssociatedKeys list(T).(list($compared)) -> list(T)
sets.contains,sets.equivalent,sets.intersects  (list(T), list(T)) -> bool
cel.@mapInsert        (map(K, V), K, V) -> map(K, V) | (map(K, V), map(K, V)) -> map(K, V)
`;

const OPTIONALS = `
hasValue              optional(V).() -> bool
optional.none         () -> optional(V)
optional.of           (V) -> optional(V)
optional.ofNonZeroValue  (V) -> optional(V)
optional.unwrap       (list(optional(V))) -> list(V)
or                    optional(V).(optional(V)) -> optional(V)
orValue               optional(V).(V) -> V
unwrapOpt             list(optional(V)).() -> list(V)
value                 optional(V).() -> V
`;

/** The declarations of the functions of CEL and of its extensions. */
export const STANDARD_FUNCTIONS = OPERATORS + CONVERSIONS + TIMES + STRINGS + LISTS + OPTIONALS;
