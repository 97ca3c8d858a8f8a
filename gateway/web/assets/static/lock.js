// Locks among the tabs of a browser. A tab's locks are released when it closes or dies.

/**
 * Acquires a lock once it is free. It returns a function that releases the lock.
 * @param {string} name
 * @param {LockMode} mode
 * @param {() => void} [got] called when it is held
 */
export function hold(name, mode, got) {
  const end = new AbortController();
  const { signal } = end;
  navigator.locks.request(name, { mode, signal }, () => {
    if (!signal.aborted) got?.();
    return signal.aborted || new Promise((resolve) => { signal.addEventListener('abort', resolve); });
  }).catch((why) => { if (why.name !== 'AbortError') throw why; });
  return () => end.abort();
}
