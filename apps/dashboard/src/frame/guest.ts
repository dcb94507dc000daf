import { createContext, useContext } from 'react';

/** The reader has no account here: a link shows them one rollout, read-only. Pages leave out what that does not cover. */
export const Guest = createContext(false);
export const useGuest = (): boolean => useContext(Guest);
