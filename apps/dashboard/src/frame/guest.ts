import type { OpenShare } from '@palestra/protocol';
import { createContext, useContext } from 'react';

/** The share link that a reader without an account reads; null for members. Pages hide what it does not cover. */
export const SharedLink = createContext<OpenShare | null>(null);
export const useSharedLink = (): OpenShare | null => useContext(SharedLink);
export const useGuest = (): boolean => useSharedLink() !== null;
