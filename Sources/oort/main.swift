print("oort")
