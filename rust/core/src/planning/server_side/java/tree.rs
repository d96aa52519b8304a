//! The red-black trees of crowded bins in `java.util.HashMap`. A tree's nodes stay in a list, and iteration goes along the
//! list; but insertion places a node behind its parent, and the root comes first. So the shape of the tree decides the order.

use std::cmp::Ordering;

use crate::planning::group::NONE;

use super::hash::JavaKey;
use super::node::Node;

/// A side of a node, and the place of that child in [`Links::children`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// A node's place in its tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Links {
    parent: u32,
    children: [u32; 2],
    /// The node before it in the list of the bin.
    pub(super) prev: u32,
    red: bool,
}

impl Default for Links {
    fn default() -> Self {
        Self { parent: NONE, children: [NONE; 2], prev: NONE, red: false }
    }
}

/// A tree that is being changed. [`NONE`] stands for Java's null, which counts as black.
struct Tree<'a> {
    links: &'a mut [Links],
    root: u32,
}

/// Builds the tree of a list, and returns the new head of the list.
pub(super) fn build<K: JavaKey>(nodes: &mut [Node<K>], links: &mut [Links], list: &[u32]) -> u32 {
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
pub(super) fn insert<K: JavaKey>(nodes: &mut [Node<K>], links: &mut [Links], head: &mut u32, node: u32) {
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

/// Removes a node. Returns whether the bin stays a tree; a small tree becomes a plain list again.
pub(super) fn remove<K: JavaKey>(nodes: &mut [Node<K>], links: &mut [Links], head: &mut u32, node: u32) -> bool {
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

    fn child(&self, node: u32, side: Side) -> u32 {
        self.at(node).children[side as usize]
    }

    fn left(&self, node: u32) -> u32 {
        self.child(node, Side::Left)
    }

    fn right(&self, node: u32) -> u32 {
        self.child(node, Side::Right)
    }

    fn set_child(&mut self, node: u32, side: Side, child: u32) {
        self.links[node as usize].children[side as usize] = child;
    }

    /// The side of `parent` on which `child` is.
    fn side(&self, parent: u32, child: u32) -> Side {
        if self.left(parent) == child { Side::Left } else { Side::Right }
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

    /// Makes `new` the child of `parent` in place of `old`.
    fn replace(&mut self, parent: u32, old: u32, new: u32) {
        if parent == NONE {
            self.root = new;
        } else {
            self.set_child(parent, self.side(parent, old), new);
        }
    }

    /// Adds a leaf by hash and, of equal hashes, by comparison; returns its parent, and balances the tree.
    fn add<K: JavaKey>(&mut self, nodes: &[Node<K>], node: u32) -> u32 {
        if self.root == NONE {
            self.root = node;
            self.paint(node, false);
            return NONE;
        }
        let new = &nodes[node as usize];
        let mut at = self.root;
        loop {
            let there = &nodes[at as usize];
            let greater = new.hash.cmp(&there.hash).then_with(|| new.key.compare(there.key)) == Ordering::Greater;
            let side = if greater { Side::Right } else { Side::Left };
            let next = self.child(at, side);
            if next != NONE {
                at = next;
                continue;
            }
            self.links[node as usize].parent = at;
            self.set_child(at, side, node);
            self.balance_insertion(node);
            return at;
        }
    }

    /// Moves a node down to `side`, and its other child up into its place.
    fn rotate(&mut self, node: u32, side: Side) {
        let up = self.child(node, side.other());
        if node == NONE || up == NONE {
            return;
        }
        let inner = self.child(up, side);
        self.set_child(node, side.other(), inner);
        self.set_parent(inner, node);
        let parent = self.parent(node);
        self.links[up as usize].parent = parent;
        if parent == NONE {
            self.paint(up, false);
        }
        self.replace(parent, node, up);
        self.set_child(up, side, node);
        self.links[node as usize].parent = up;
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
            let side = self.side(grand, parent);
            let uncle = self.child(grand, side.other());
            if self.red(uncle) {
                self.paint(uncle, false);
                self.paint(parent, false);
                self.paint(grand, true);
                node = grand;
                continue;
            }
            if node == self.child(parent, side.other()) {
                node = parent;
                self.rotate(node, side);
                parent = self.parent(node);
                grand = self.parent(parent);
            }
            if parent != NONE {
                self.paint(parent, false);
                if grand != NONE {
                    self.paint(grand, true);
                    self.rotate(grand, side.other());
                }
            }
        }
    }

    /// Takes a node out: it changes places with its successor first if it has two children.
    fn take_out(&mut self, node: u32) {
        let [left, right] = self.at(node).children;
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
                self.set_child(successor, Side::Right, node);
            } else {
                let above = self.parent(successor);
                self.links[node as usize].parent = above;
                if above != NONE {
                    self.set_child(above, self.side(above, successor), node);
                }
                self.set_child(successor, Side::Right, right);
                self.set_parent(right, successor);
            }
            self.links[node as usize].children = [NONE, below];
            self.set_parent(below, node);
            self.set_child(successor, Side::Left, left);
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
            (links.children, links.parent) = ([NONE; 2], NONE);
        }
        if !self.red(node) {
            self.balance_deletion(replacement);
        }
        if replacement == node {
            let parent = self.parent(node);
            self.links[node as usize].parent = NONE;
            if parent != NONE {
                self.set_child(parent, self.side(parent, node), NONE);
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
            node = self.deleted(node, parent, self.side(parent, node));
        }
    }

    /// One step of the repair. All paths through `node`, the child of `start` on `side`, have one black node fewer than those
    /// through its sibling. Returns the node at which the next step begins.
    fn deleted(&mut self, node: u32, start: u32, side: Side) -> u32 {
        let opposite = side.other();
        let mut parent = start;
        let mut sibling = self.child(parent, opposite);
        if self.red(sibling) {
            self.paint(sibling, false);
            self.paint(parent, true);
            self.rotate(parent, side);
            parent = self.parent(node);
            sibling = self.child(parent, opposite);
        }
        if sibling == NONE {
            return parent;
        }
        let (near, far) = (self.child(sibling, side), self.child(sibling, opposite));
        if !self.red(far) && !self.red(near) {
            self.paint(sibling, true);
            return parent;
        }
        if !self.red(far) {
            self.paint(near, false);
            self.paint(sibling, true);
            self.rotate(sibling, opposite);
            parent = self.parent(node);
            sibling = self.child(parent, opposite);
        }
        if sibling != NONE {
            let red = self.red(parent);
            self.paint(sibling, red);
            let far = self.child(sibling, opposite);
            self.paint(far, false);
        }
        if parent != NONE {
            self.paint(parent, false);
            self.rotate(parent, side);
        }
        self.root
    }
}
