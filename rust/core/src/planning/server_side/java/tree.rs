//! The red-black trees of crowded bins in `java.util.HashMap`. A tree's nodes stay in a list, and iteration goes along the
//! list; but insertion places a node behind its parent, and the root comes first. So the shape of the tree decides the order.

use std::cmp::Ordering;

use crate::planning::group::NONE;

use super::hash::Key;
use super::node::Node;

/// A node's place in its tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    parent: u32,
    left: u32,
    right: u32,
    /// The node before it in the list of the bin.
    pub(super) prev: u32,
    red: bool,
}

impl Default for Links {
    fn default() -> Self {
        Self { parent: NONE, left: NONE, right: NONE, prev: NONE, red: false }
    }
}

/// A tree that is being changed. [`NONE`] stands for Java's null, which counts as black.
struct Tree<'a> {
    links: &'a mut [Links],
    root: u32,
}

/// Builds the tree of a list, and returns the new head of the list.
pub(super) fn build<K: Key>(nodes: &mut [Node<K>], links: &mut [Links], list: &[u32]) -> u32 {
    let mut before = NONE;
    for &node in list {
        links[node as usize] = Links { prev: before, ..Links::default() };
        before = node;
    }
    let mut tree = Tree { links, root: NONE };
    for &node in list {
        tree.add(nodes, node);
    }
    let root = tree.root;
    let mut head = list[0];
    root_to_front(nodes, links, &mut head, root);
    head
}

/// Inserts a node that is in no list: behind its parent.
pub(super) fn insert<K: Key>(nodes: &mut [Node<K>], links: &mut [Links], head: &mut u32, node: u32) {
    links[node as usize] = Links::default();
    let root = top(links, *head);
    let mut tree = Tree { links, root };
    let parent = tree.add(nodes, node);
    let root = tree.root;
    let after = nodes[parent as usize].next;
    nodes[parent as usize].next = node;
    nodes[node as usize].next = after;
    links[node as usize].prev = parent;
    if after != NONE {
        links[after as usize].prev = node;
    }
    root_to_front(nodes, links, head, root);
}

/// Removes a node. Whether the bin stays a tree; a small one becomes a plain list again.
pub(super) fn remove<K: Key>(nodes: &mut [Node<K>], links: &mut [Links], head: &mut u32, node: u32) -> bool {
    let (before, after) = (links[node as usize].prev, nodes[node as usize].next);
    let first = *head;
    if before == NONE {
        *head = after;
    } else {
        nodes[before as usize].next = after;
    }
    if after != NONE {
        links[after as usize].prev = before;
    }
    if *head == NONE {
        return false;
    }
    let root = top(links, first);
    let mut tree = Tree { links, root };
    if tree.right(root) == NONE || tree.left(root) == NONE || tree.left(tree.left(root)) == NONE {
        return false;
    }
    tree.take_out(node);
    let root = tree.root;
    root_to_front(nodes, links, head, root);
    true
}

fn top(links: &[Links], node: u32) -> u32 {
    let mut at = node;
    while links[at as usize].parent != NONE {
        at = links[at as usize].parent;
    }
    at
}

fn root_to_front<K>(nodes: &mut [Node<K>], links: &mut [Links], head: &mut u32, root: u32) {
    if *head == root {
        return;
    }
    let (before, after) = (links[root as usize].prev, nodes[root as usize].next);
    if after != NONE {
        links[after as usize].prev = before;
    }
    if before != NONE {
        nodes[before as usize].next = after;
    }
    links[*head as usize].prev = root;
    nodes[root as usize].next = *head;
    links[root as usize].prev = NONE;
    *head = root;
}

impl Tree<'_> {
    fn at(&self, node: u32) -> Links {
        if node == NONE { Links::default() } else { self.links[node as usize] }
    }

    fn left(&self, node: u32) -> u32 {
        self.at(node).left
    }

    fn right(&self, node: u32) -> u32 {
        self.at(node).right
    }

    fn parent(&self, node: u32) -> u32 {
        self.at(node).parent
    }

    fn red(&self, node: u32) -> bool {
        self.at(node).red
    }

    fn paint(&mut self, node: u32, red: bool) {
        if node != NONE {
            self.links[node as usize].red = red;
        }
    }

    fn set_parent(&mut self, node: u32, parent: u32) {
        if node != NONE {
            self.links[node as usize].parent = parent;
        }
    }

    /// Puts `new` where `old` is below `parent`.
    fn replace(&mut self, parent: u32, old: u32, new: u32) {
        if parent == NONE {
            self.root = new;
        } else if self.links[parent as usize].left == old {
            self.links[parent as usize].left = new;
        } else {
            self.links[parent as usize].right = new;
        }
    }

    /// Adds a leaf by hash and, of equal hashes, by comparison; returns its parent, and balances the tree.
    fn add<K: Key>(&mut self, nodes: &[Node<K>], node: u32) -> u32 {
        if self.root == NONE {
            self.root = node;
            self.paint(node, false);
            return NONE;
        }
        let new = &nodes[node as usize];
        let mut at = self.root;
        loop {
            let there = &nodes[at as usize];
            let left = new.hash.cmp(&there.hash).then_with(|| new.key.compare(there.key)) != Ordering::Greater;
            let next = if left { self.left(at) } else { self.right(at) };
            if next != NONE {
                at = next;
                continue;
            }
            self.links[node as usize].parent = at;
            if left {
                self.links[at as usize].left = node;
            } else {
                self.links[at as usize].right = node;
            }
            self.balance_insertion(node);
            return at;
        }
    }

    fn rotate_left(&mut self, node: u32) {
        let right = self.right(node);
        if node == NONE || right == NONE {
            return;
        }
        let inner = self.left(right);
        self.links[node as usize].right = inner;
        self.set_parent(inner, node);
        let parent = self.parent(node);
        self.links[right as usize].parent = parent;
        if parent == NONE {
            self.paint(right, false);
        }
        self.replace(parent, node, right);
        self.links[right as usize].left = node;
        self.links[node as usize].parent = right;
    }

    fn rotate_right(&mut self, node: u32) {
        let left = self.left(node);
        if node == NONE || left == NONE {
            return;
        }
        let inner = self.right(left);
        self.links[node as usize].left = inner;
        self.set_parent(inner, node);
        let parent = self.parent(node);
        self.links[left as usize].parent = parent;
        if parent == NONE {
            self.paint(left, false);
        }
        self.replace(parent, node, left);
        self.links[left as usize].right = node;
        self.links[node as usize].parent = left;
    }

    fn balance_insertion(&mut self, added: u32) {
        self.paint(added, true);
        let mut node = added;
        loop {
            let mut parent = self.parent(node);
            if parent == NONE {
                self.paint(node, false);
                self.root = node;
                return;
            }
            let mut grand = self.parent(parent);
            if !self.red(parent) || grand == NONE {
                return;
            }
            let on_left = parent == self.left(grand);
            let uncle = if on_left { self.right(grand) } else { self.left(grand) };
            if self.red(uncle) {
                self.paint(uncle, false);
                self.paint(parent, false);
                self.paint(grand, true);
                node = grand;
                continue;
            }
            if node == if on_left { self.right(parent) } else { self.left(parent) } {
                node = parent;
                if on_left {
                    self.rotate_left(node);
                } else {
                    self.rotate_right(node);
                }
                parent = self.parent(node);
                grand = self.parent(parent);
            }
            if parent != NONE {
                self.paint(parent, false);
                if grand != NONE {
                    self.paint(grand, true);
                    if on_left {
                        self.rotate_right(grand);
                    } else {
                        self.rotate_left(grand);
                    }
                }
            }
        }
    }

    /// Takes a node out: it changes places with its successor first if it has two children.
    fn take_out(&mut self, node: u32) {
        let Links { left, right, .. } = self.at(node);
        let replacement = if left != NONE && right != NONE {
            let mut successor = right;
            while self.left(successor) != NONE {
                successor = self.left(successor);
            }
            let (red, node_red) = (self.red(successor), self.red(node));
            self.paint(successor, node_red);
            self.paint(node, red);
            let (below, parent) = (self.right(successor), self.parent(node));
            if successor == right {
                self.links[node as usize].parent = successor;
                self.links[successor as usize].right = node;
            } else {
                let above = self.parent(successor);
                self.links[node as usize].parent = above;
                if above != NONE {
                    if successor == self.left(above) {
                        self.links[above as usize].left = node;
                    } else {
                        self.links[above as usize].right = node;
                    }
                }
                self.links[successor as usize].right = right;
                self.set_parent(right, successor);
            }
            self.links[node as usize].left = NONE;
            self.links[node as usize].right = below;
            self.set_parent(below, node);
            self.links[successor as usize].left = left;
            self.set_parent(left, successor);
            self.links[successor as usize].parent = parent;
            self.replace(parent, node, successor);
            if below == NONE { node } else { below }
        } else if left != NONE {
            left
        } else if right != NONE {
            right
        } else {
            node
        };
        if replacement != node {
            let parent = self.parent(node);
            self.links[replacement as usize].parent = parent;
            if parent == NONE {
                self.paint(replacement, false);
            }
            self.replace(parent, node, replacement);
            let links = &mut self.links[node as usize];
            (links.left, links.right, links.parent) = (NONE, NONE, NONE);
        }
        if !self.red(node) {
            self.balance_deletion(replacement);
        }
        if replacement == node {
            let parent = self.parent(node);
            self.links[node as usize].parent = NONE;
            if parent != NONE {
                if node == self.left(parent) {
                    self.links[parent as usize].left = NONE;
                } else if node == self.right(parent) {
                    self.links[parent as usize].right = NONE;
                }
            }
        }
    }

    fn balance_deletion(&mut self, from: u32) {
        let mut node = from;
        while node != NONE && node != self.root {
            let parent = self.parent(node);
            if parent == NONE {
                self.paint(node, false);
                self.root = node;
                return;
            }
            if self.red(node) {
                self.paint(node, false);
                return;
            }
            node = if self.left(parent) == node {
                self.deleted_left(node, parent)
            } else {
                self.deleted_right(node, parent)
            };
        }
    }

    /// One step up from a left child that lacks a black node. Returns where the next step begins.
    fn deleted_left(&mut self, node: u32, start: u32) -> u32 {
        let mut parent = start;
        let mut sibling = self.right(parent);
        if self.red(sibling) {
            self.paint(sibling, false);
            self.paint(parent, true);
            self.rotate_left(parent);
            parent = self.parent(node);
            sibling = self.right(parent);
        }
        if sibling == NONE {
            return parent;
        }
        let (near, far) = (self.left(sibling), self.right(sibling));
        if !self.red(far) && !self.red(near) {
            self.paint(sibling, true);
            return parent;
        }
        if !self.red(far) {
            self.paint(near, false);
            self.paint(sibling, true);
            self.rotate_right(sibling);
            parent = self.parent(node);
            sibling = self.right(parent);
        }
        if sibling != NONE {
            let red = self.red(parent);
            self.paint(sibling, red);
            let far = self.right(sibling);
            self.paint(far, false);
        }
        if parent != NONE {
            self.paint(parent, false);
            self.rotate_left(parent);
        }
        self.root
    }

    /// As [`Tree::deleted_left`], mirrored.
    fn deleted_right(&mut self, node: u32, start: u32) -> u32 {
        let mut parent = start;
        let mut sibling = self.left(parent);
        if self.red(sibling) {
            self.paint(sibling, false);
            self.paint(parent, true);
            self.rotate_right(parent);
            parent = self.parent(node);
            sibling = self.left(parent);
        }
        if sibling == NONE {
            return parent;
        }
        let (far, near) = (self.left(sibling), self.right(sibling));
        if !self.red(far) && !self.red(near) {
            self.paint(sibling, true);
            return parent;
        }
        if !self.red(far) {
            self.paint(near, false);
            self.paint(sibling, true);
            self.rotate_left(sibling);
            parent = self.parent(node);
            sibling = self.left(parent);
        }
        if sibling != NONE {
            let red = self.red(parent);
            self.paint(sibling, red);
            let far = self.left(sibling);
            self.paint(far, false);
        }
        if parent != NONE {
            self.paint(parent, false);
            self.rotate_right(parent);
        }
        self.root
    }
}
